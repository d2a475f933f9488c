//! Tests `https` and the certificates the server trusts.

use std::io::Write as _;
use std::sync::Arc;

use outpost_testkit::base64;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, pki_types::CertificateDer};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::{get, get_params, request_fails, text};
use crate::outpost;

/// A web server for `localhost` with a self-signed certificate. It ends with its task.
struct TlsServer {
    port: u16,
    /// Its certificate, as a file for the trust store.
    certificate: NamedTempFile,
    serving: JoinHandle<()>,
}

impl TlsServer {
    async fn start() -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let certified = certified.expect("a certificate");
        let mut certificate = NamedTempFile::new().expect("a file");
        let text = base64(certified.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        certificate.write_all(pem.as_bytes()).expect("written");
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
        let acceptor = TlsAcceptor::from(Arc::new(config(certified.cert.der().clone(), key)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // A client that doesn't trust the certificate aborts the handshake.
                let Ok(mut stream) = acceptor.accept(socket).await else {
                    continue;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure";
                let _ = stream.write_all(page).await;
                let _ = stream.shutdown().await;
            }
        });
        TlsServer {
            port,
            certificate,
            serving,
        }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn config(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> ServerConfig {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a configuration")
}

#[tokio::test]
async fn trusted_certificate_is_accepted() {
    let secure = TlsServer::start().await;
    let file = secure.certificate.path().to_str().expect("a UTF-8 path");
    let server = outpost().env("SSL_CERT_FILE", file).start().await;
    let client = server.client().await;
    assert_eq!(text(&get(&client, &secure.url()).await), "secure");
}

#[tokio::test]
async fn untrusted_certificate_is_rejected() {
    let secure = TlsServer::start().await;
    let server = outpost().start().await;
    let client = server.client().await;
    let error = request_fails(&client, get_params(&secure.url(), json!({}))).await;
    assert_eq!(error.code, -32603);
    let message = format!(
        "http/request failed: cannot connect to localhost:{}: invalid peer certificate: ",
        secure.port
    );
    assert!(error.message.starts_with(&message), "{error:?}");
}
