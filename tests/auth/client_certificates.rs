//! Tests client certificates, by which principals are named.

use outpost_testkit::deadline::poll_until;
use outpost_testkit::http_client::{UPGRADE, get};
use outpost_testkit::sh;
use rcgen::{CertificateParams, DnType};
use serde_json::json;

use super::certificates::{Authority, Certificate, TlsClient, TlsTunnel, secure_port};
use super::secret_file;
use super::tls_server::TlsServer;
use super::tokens_file::TokensFile;
use crate::outpost;

/// A server that asks for certificates of another authority than its own.
struct Host {
    tls: TlsServer,
    clients: Authority,
    _files: tempfile::TempDir,
}

impl Host {
    /// Starts it with further arguments. Its configuration lets `spiffe://example/ci` read files only.
    async fn start(args: &[&str]) -> Self {
        let files = tempfile::tempdir().expect("a directory");
        let clients = Authority::new();
        let ca = secret_file(files.path(), "clients.pem", &clients.pem());
        let config = files.path().join("outpost.toml");
        let text = "[principals.\"spiffe://example/ci\"]\nscopes = [\"files:read\"]\n";
        std::fs::write(&config, text).expect("a configuration");
        let ca = ["--tls-client-ca", ca.to_str().expect("a path")];
        let config = ["--config", config.to_str().expect("a path")];
        Host {
            tls: TlsServer::start(&[&ca[..], &config, args].concat()).await,
            clients,
            _files: files,
        }
    }

    /// A tunnel for a client with this certificate.
    async fn tunnel(&self, certificate: &Certificate) -> TlsTunnel {
        let client = TlsClient::trusting(&self.tls.authority).with_certificate(certificate);
        TlsTunnel::to(&self.tls.server, client).await
    }
}

/// A certificate with a common name only.
fn for_common_name(authority: &Authority, name: &str) -> Certificate {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    authority.issue(params)
}

#[tokio::test]
async fn principal_is_named_by_the_certificate() {
    let host = Host::start(&[]).await;
    let server = &host.tls.server;
    let ci = host
        .tunnel(&host.clients.for_uri("spiffe://example/ci"))
        .await;
    let client = server.connect_to(&ci.url()).await;
    client.handshake().await;
    let refused = client.start_fails(sh("p", "true")).await;
    assert_eq!(refused.parts(), (-32011, "not permitted: exec is required"));

    let alice = host.tunnel(&for_common_name(&host.clients, "alice")).await;
    let client = server.connect_to(&alice.url()).await;
    let session = client.handshake().await["sessionId"].clone();
    client.start(sh("p", "cat").stdin()).await;
    // A second certificate of that name is the same principal, another name is not.
    let bob = host.tunnel(&for_common_name(&host.clients, "bob")).await;
    let resume = json!({"clientName": "x", "resumeSessionId": session, "takeover": true});
    let stranger = server.connect_to(&bob.url()).await;
    stranger.call_fails("initialize", resume.clone()).await;
    client.check_alive().await;
    let again = host.tunnel(&for_common_name(&host.clients, "alice")).await;
    let again = server.connect_to(&again.url()).await;
    assert_eq!(again.call("initialize", resume).await["sessionId"], session);
}

/// Asserts that the server admits no client of this kind.
async fn assert_refused(host: &Host, client: &TlsClient) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let port = secure_port(&host.tls.server);
    // With TLS 1.3 the client's handshake ends before the server has seen its certificate.
    let asked = async {
        let mut stream = client.connect(port).await?;
        let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        stream.read_u8().await
    };
    let answer = outpost_testkit::deadline::expect_soon("a refusal", asked).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn client_without_a_certificate_of_the_authority_is_refused() {
    let files = tempfile::tempdir().expect("a directory");
    let audit_log = files.path().join("audit.log");
    let host = Host::start(&["--audit-log", audit_log.to_str().expect("a path")]).await;
    let trusting = TlsClient::trusting(&host.tls.authority);
    assert_refused(&host, &trusting).await;
    let own = Authority::new().for_uri("spiffe://example/ci");
    assert_refused(&host, &trusting.with_certificate(&own)).await;
    poll_until("both refusals in the audit log", || {
        let lines = std::fs::read_to_string(&audit_log).expect("a file");
        (lines.matches("\"event\":\"auth_failed\"").count() == 2).then_some(())
    })
    .await;
    // The plain listener beside it admits the own user on loopback only.
    let plain = get(host.tls.server.address(), "/", UPGRADE).await;
    assert_eq!(plain.status, 101);
}

#[tokio::test]
async fn token_replaces_the_certificate_if_both_are_configured() {
    let tokens = TokensFile::new();
    let file = tokens.path();
    let token = tokens.create("ci", &[]).await;
    let host = Host::start(&["--tokens-file", file]).await;
    host.tls.client(&token).await.check_alive().await;
    let missing = host.tls.upgrade(&[]).await;
    assert_eq!(missing.body, "missing websocket bearer token");
    let certified = host
        .tunnel(&host.clients.for_uri("spiffe://example/x"))
        .await;
    let client = host.tls.server.connect_to(&certified.url()).await;
    client.handshake().await;
    client.check_alive().await;
}

#[tokio::test]
async fn command_line_presents_a_certificate() {
    let host = Host::start(&[]).await;
    let dir = tempfile::tempdir().expect("a directory");
    for_common_name(&host.clients, "alice").write(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let ca = secret_file(dir.path(), "ca.pem", &host.tls.authority.pem());
    let url = format!("wss://localhost:{}", secure_port(&host.tls.server));
    let ca = ca.display().to_string();
    let on = ["run", "--on", &url, "--ca", &ca];
    let [cert, key] = [path("cert.pem"), path("key.pem")];
    let identity = ["--client-cert", &cert, "--client-key", &key];
    let command = ["--", "echo", "hi"];
    let output = outpost()
        .run(&[&on[..], &identity, &command].concat())
        .await;
    assert_eq!(
        (output.code, &*output.stdout),
        (Some(0), "hi\n"),
        "{output:?}"
    );
    let output = outpost().run(&[&on[..], &command].concat()).await;
    assert_eq!(output.code, Some(255), "{output:?}");
    assert!(output.stderr.contains("ertificate"), "{output:?}");
}
