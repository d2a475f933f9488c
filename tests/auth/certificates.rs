//! Certificates made by a test, and a tunnel that adds TLS to plain connections.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use outpost_testkit::Server;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, string::Ia5String,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ALL_VERSIONS, ClientConfig, RootCertStore, SupportedProtocolVersion};
use sha2::{Digest as _, Sha256};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::secret_file;

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(crate) struct Certificate {
    pem: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Makes a certificate for `localhost`.
    pub(crate) fn for_localhost(&self) -> Certificate {
        self.issue(CertificateParams::new(vec!["localhost".to_owned()]).expect("a name"))
    }

    /// Makes a certificate with a URI as its name.
    pub(crate) fn for_uri(&self, uri: &str) -> Certificate {
        let mut params = CertificateParams::default();
        let uri = Ia5String::try_from(uri).expect("a URI");
        params.subject_alt_names.push(SanType::URI(uri));
        self.issue(params)
    }

    pub(crate) fn issue(&self, params: CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Certificate {
            pem: certificate.pem(),
            der: certificate.der().clone(),
            key,
        }
    }
}

impl Certificate {
    /// Writes `cert.pem` and `key.pem`.
    pub(crate) fn write(&self, directory: &Path) {
        secret_file(directory, "key.pem", &self.key.serialize_pem());
        fs::write(directory.join("cert.pem"), &self.pem).expect("a file");
    }

    /// The fingerprint that clients can pin.
    pub(crate) fn fingerprint(&self) -> String {
        let hash = Sha256::digest(&self.der);
        format!("sha256:{hash:x}")
    }
}

/// The arguments of a server with the certificate that was written to this directory.
pub(crate) fn tls_arguments(directory: &Path) -> [String; 4] {
    let path = |name: &str| directory.join(name).display().to_string();
    let [certificate, key] = [path("cert.pem"), path("key.pem")];
    [
        "--tls-cert".to_owned(),
        certificate,
        "--tls-key".to_owned(),
        key,
    ]
}

/// The port of the `wss://` listener of a server.
pub(crate) fn secure_port(server: &Server) -> u16 {
    let urls = server.urls().iter();
    let url = urls.rev().find(|url| url.starts_with("wss://"));
    let port = url.and_then(|url| url.rsplit_once(':')?.1.parse().ok());
    port.expect("a wss:// URL")
}

/// How a client uses TLS.
#[derive(Clone)]
pub(crate) struct TlsClient {
    roots: Arc<RootCertStore>,
    identity: Option<(CertificateDer<'static>, Arc<PrivateKeyDer<'static>>)>,
    versions: &'static [&'static SupportedProtocolVersion],
    pub(crate) protocols: Vec<Vec<u8>>,
}

impl TlsClient {
    /// Trusts an authority.
    pub(crate) fn trusting(authority: &Authority) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).expect("an authority");
        TlsClient {
            roots: Arc::new(roots),
            identity: None,
            versions: ALL_VERSIONS,
            protocols: Vec::new(),
        }
    }

    /// Presents a certificate.
    pub(crate) fn with_certificate(mut self, certificate: &Certificate) -> Self {
        let key = PrivateKeyDer::try_from(certificate.key.serialize_der()).expect("a key");
        self.identity = Some((certificate.der.clone(), Arc::new(key)));
        self
    }

    /// Uses these versions only.
    pub(crate) fn versions(mut self, versions: &'static [&SupportedProtocolVersion]) -> Self {
        self.versions = versions;
        self
    }

    /// Performs a handshake with the server on this port of loopback.
    pub(crate) async fn connect(&self, port: u16) -> io::Result<TlsStream<TcpStream>> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(self.versions)
            .expect("versions")
            .with_root_certificates(Arc::clone(&self.roots));
        let mut config = match &self.identity {
            Some((certificate, key)) => builder
                .with_client_auth_cert(vec![certificate.clone()], key.clone_key())
                .expect("a certificate"),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&self.protocols);
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
    }
}

/// Forwards plain connections to the `wss://` listener of a server. Dropping it closes the listener.
pub(crate) struct TlsTunnel {
    address: String,
    accepting: JoinHandle<()>,
}

impl TlsTunnel {
    pub(crate) async fn to(server: &Server, client: TlsClient) -> Self {
        let port = secure_port(server);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let accepting = tokio::spawn(async move {
            while let Ok((mut plain, _)) = listener.accept().await {
                let client = client.clone();
                tokio::spawn(async move {
                    let mut encrypted = client.connect(port).await?;
                    copy_bidirectional(&mut plain, &mut encrypted).await
                });
            }
        });
        TlsTunnel { address, accepting }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }
}

impl Drop for TlsTunnel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
