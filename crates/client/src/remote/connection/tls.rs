//! TLS connections to a server.

use std::{fmt, io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::dial::DialError;

/// Certificates to trust for `wss://`.
#[derive(Clone)]
pub struct TlsConfig {
    client: Arc<ClientConfig>,
}

impl TlsConfig {
    /// Trusts these certificate authorities, in DER encoding, instead of the system's.
    pub fn with_roots(certificates: impl IntoIterator<Item = Vec<u8>>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            let certificate = CertificateDer::from(certificate);
            roots.add(certificate).map_err(io::Error::other)?;
        }
        Self::new(roots)
    }

    /// Trusts the system's certificate authorities.
    pub fn system() -> io::Result<Self> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0
            && let Some(error) = found.errors.into_iter().next()
        {
            return Err(io::Error::other(error));
        }
        Self::new(roots)
    }

    /// Passes the crypto provider explicitly; a process-wide default is the program's choice.
    fn new(roots: RootCertStore) -> io::Result<Self> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let client = builder.with_root_certificates(roots).with_no_client_auth();
        Ok(TlsConfig {
            client: Arc::new(client),
        })
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").finish_non_exhaustive()
    }
}

/// Performs the TLS handshake with `host`. Without a `config`, trusts the system's certificates.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    config: Option<TlsConfig>,
) -> Result<TlsStream<TcpStream>, DialError> {
    let config = match config {
        Some(config) => config,
        None => TlsConfig::system().map_err(DialError::Tls)?,
    };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| DialError::Tls(io::Error::other(error)))?;
    let connector = TlsConnector::from(config.client);
    let connected = connector.connect(name, stream).await;
    connected.map_err(DialError::Tls)
}
