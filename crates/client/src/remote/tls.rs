//! TLS to a server.

use std::{io, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::DialError;

/// Shakes hands with `host`, trusting whom `config` trusts, or the system.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    config: Option<Arc<ClientConfig>>,
) -> Result<TlsStream<TcpStream>, DialError> {
    let config = match config {
        Some(config) => config,
        None => Arc::new(system().map_err(DialError::Tls)?),
    };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| DialError::Tls(io::Error::other(error)))?;
    let connector = TlsConnector::from(config);
    let connected = connector.connect(name, stream).await;
    connected.map_err(DialError::Tls)
}

/// Trusts the certificates of the system. The provider is named, not installed:
/// which one is the default of this program is its own decision.
fn system() -> io::Result<ClientConfig> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0
        && let Some(error) = found.errors.into_iter().next()
    {
        return Err(io::Error::other(error));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
