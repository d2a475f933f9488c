//! Connections with TLS and tokens, to a server behind a TLS listener of this test.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use outpost_client::{
    BearerToken, ConnectionState, DialError, Error, Event, Executor as _, Fingerprint,
    RemoteExecutor, RemoteOptions, Start, TlsConfig, TlsOptions,
};
use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
use outpost_rpc::ws::accept_key;
use outpost_server::{Host, Peer, Server, Settings};
use outpost_testkit::deadline::expect_soon;
use parking_lot::Mutex;
use rcgen::{CertifiedKey, KeyPair};
use rustls::{
    RootCertStore, ServerConfig, crypto::ring, pki_types::PrivateKeyDer,
    server::WebPkiClientVerifier,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split},
    net::TcpListener,
    sync::Notify,
};
use tokio_rustls::TlsAcceptor;

/// A close frame with code 4401.
const TOKEN_ENDED: [u8; 4] = [0x88, 0x02, 0x11, 0x31];

/// A server for `localhost` with a self-signed certificate.
struct TlsServer {
    port: u16,
    files: TempDir,
    certified: CertifiedKey<KeyPair>,
    access: Arc<Access>,
}

/// Decides which clients the listener accepts, and records their requests.
#[derive(Default)]
struct Access {
    /// The accepted token; none to accept everyone.
    token: Mutex<Option<String>>,
    /// Requests of the upgrade, in order.
    heads: Mutex<Vec<String>>,
    requested: Notify,
    /// Closes the current connection with code 4401.
    end_token: Notify,
}

impl Access {
    /// Waits until so many upgrades were requested.
    async fn wait_for_heads(&self, count: usize) {
        while self.heads.lock().len() < count {
            self.requested.notified().await;
        }
    }
}

impl TlsServer {
    /// Starts the server. With `client_ca`, clients need the server's own certificate.
    async fn start(token: Option<&str>, client_ca: bool) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = certified.cert.der().clone();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if client_ca {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let spawner = Spawner::new(SpawnerOptions::default()).unwrap();
        let host = Host::detect(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        let server = Server::new(engine, host, Settings::default());
        let access = Arc::new(Access::default());
        *access.token.lock() = token.map(str::to_owned);
        let shared = Arc::clone(&access);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), server.clone());
                let access = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &server, &access).await;
                    }
                });
            }
        });
        TlsServer {
            port,
            files: tempfile::tempdir().unwrap(),
            certified,
            access,
        }
    }

    fn url(&self) -> String {
        format!("wss://localhost:{}/any/path", self.port)
    }

    /// Writes a private file.
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        write_private(&path, content);
        path
    }

    fn certificate(&self) -> PathBuf {
        self.file("cert.pem", &self.certified.cert.pem())
    }

    fn fingerprint(&self) -> Fingerprint {
        let hash = Sha256::digest(self.certified.cert.der());
        format!("sha256:{hash:x}").parse().unwrap()
    }

    /// Trusts the server's certificate.
    fn trusting(&self) -> TlsOptions {
        TlsOptions {
            ca_file: Some(self.certificate()),
            ..TlsOptions::default()
        }
    }

    fn options(&self, tls: &TlsOptions) -> RemoteOptions {
        RemoteOptions::default().tls(TlsConfig::new(tls).unwrap())
    }
}

fn write_private(path: &Path, content: &str) {
    use std::io::Write as _;
    let mut file = fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(content.as_bytes()).unwrap();
}

/// Answers one upgrade, and serves the connection until its token ends.
async fn serve<S>(mut stream: S, server: &Server, access: &Access)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    access.heads.lock().push(head.clone());
    access.requested.notify_one();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let sent = header("Authorization: Bearer ");
    let expected = access.token.lock().clone();
    if expected.is_some() && sent != expected.as_deref() {
        let text = "invalid websocket bearer token\u{1b}[31m";
        let length = text.len();
        let answer = format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {length}\r\n\r\n{text}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        return;
    }
    let accept = accept_key(header("Sec-WebSocket-Key: ").unwrap().as_bytes());
    let answer =
        format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let (mut from_client, mut to_client) = split(stream);
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (mut from_server, mut to_server) = split(ours);
    let (read, write) = split(theirs);
    let serving = server.serve_websocket(Box::new(read), Box::new(write), Peer::Unverified);
    let relaying = async {
        tokio::select! {
            _ = copy(&mut from_client, &mut to_server) => {}
            _ = copy(&mut from_server, &mut to_client) => {}
            () = access.end_token.notified() => {
                to_client.write_all(&TOKEN_ENDED).await.unwrap();
                to_client.flush().await.unwrap();
            }
        }
        let _ = to_server.shutdown().await;
        drop((from_server, to_server));
    };
    tokio::join!(serving, relaying);
}

async fn refused(url: &str, options: RemoteOptions) -> (Error, String) {
    let connecting = RemoteExecutor::connect(url, options);
    let connected = expect_soon("the refusal", connecting).await;
    let error = connected.err().expect("the connection is refused");
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    (error, cause.unwrap_or_default())
}

async fn echo(remote: &RemoteExecutor) {
    let process = remote.start(Start::shell("echo secret")).await.unwrap();
    let first = process.events().next().await.unwrap();
    assert!(
        matches!(&first, Event::Output { bytes, .. } if bytes == "secret\n"),
        "{first:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_certificates_are_accepted() {
    let server = TlsServer::start(None, false).await;
    let options = server.options(&server.trusting());
    let remote = RemoteExecutor::connect(&server.url(), options.clone())
        .await
        .unwrap();
    echo(&remote).await;
    remote.close().await.unwrap();

    // The system does not trust the certificate, and it is for another name.
    let other_name = format!("wss://127.0.0.1:{}", server.port);
    let unpinned = RemoteOptions::default();
    for (url, options, text) in [
        (server.url(), unpinned, "its fingerprint is sha256:"),
        (other_name, options, "for localhost and not for 127.0.0.1"),
    ] {
        let (error, cause) = refused(&url, options).await;
        assert!(matches!(error, Error::Unreachable { .. }));
        assert!(cause.contains(text), "{cause}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_certificate_is_accepted_and_no_other() {
    let server = TlsServer::start(None, false).await;
    let pinned = |fingerprint| TlsOptions {
        fingerprint: Some(fingerprint),
        ..server.trusting()
    };
    let options = server.options(&pinned(server.fingerprint()));
    // The pin stands for the name too.
    let url = format!("wss://127.0.0.1:{}", server.port);
    let remote = RemoteExecutor::connect(&url, options).await.unwrap();
    echo(&remote).await;
    remote.close().await.unwrap();

    // A trusted certificate is refused if it isn't the pinned one.
    let other = format!("sha256:{:x}", Sha256::digest(b"other"));
    let options = server.options(&pinned(other.parse().unwrap()));
    let (error, cause) = refused(&server.url(), options).await;
    let Error::Unreachable { source, .. } = error else {
        panic!("{error:?}");
    };
    assert!(matches!(*source, DialError::WrongCertificate { .. }));
    let found = server.fingerprint().to_string();
    assert!(cause.contains(&found), "{cause}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificate_is_presented() {
    let server = TlsServer::start(None, true).await;
    let key = server.file("key.pem", &server.certified.signing_key.serialize_pem());
    let with_certificate = TlsOptions {
        client_certificate: Some((server.certificate(), key.clone())),
        ..server.trusting()
    };
    let remote = RemoteExecutor::connect(&server.url(), server.options(&with_certificate))
        .await
        .unwrap();
    echo(&remote).await;
    remote.close().await.unwrap();

    let without = server.options(&server.trusting());
    let connected = RemoteExecutor::connect(&server.url(), without).await;
    assert!(connected.is_err());

    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = TlsConfig::new(&with_certificate).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    let swapped = TlsOptions {
        client_certificate: Some((server.file("empty", "-"), key)),
        ..TlsOptions::default()
    };
    let error = TlsConfig::new(&swapped).unwrap_err().to_string();
    assert!(error.contains("it has none in PEM format"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_token_is_a_typed_error_with_the_servers_text() {
    let server = TlsServer::start(Some("right"), false).await;
    let options = server.options(&server.trusting());
    let right = options.clone().token(BearerToken::new("right").unwrap());
    let remote = RemoteExecutor::connect(&server.url(), right).await.unwrap();
    remote.close().await.unwrap();

    let wrong = options.clone().token(BearerToken::new("wr0ng").unwrap());
    for (options, remedy) in [
        (options, "connect with a token"),
        (wrong, "it is wrong, expired or revoked"),
    ] {
        let (error, cause) = refused(&server.url(), options).await;
        let Error::Unreachable { source, .. } = &error else {
            panic!("{error:?}");
        };
        let is_unauthorized = matches!(**source, DialError::Unauthorized { status: 401, .. });
        assert!(is_unauthorized, "{source:?}");
        let text = "(HTTP status 401: invalid websocket bearer token\\u{1b}[31m); ";
        assert!(cause.contains(text) && cause.contains(remedy), "{cause}");
        assert!(!format!("{error:?} {cause}").contains("wr0ng"));
    }
}

#[tokio::test]
async fn token_is_not_sent_unencrypted() {
    for (url, host) in [
        ("ws://build.example:7777", "build.example"),
        ("ws://192.0.2.1:7777/path", "192.0.2.1"),
    ] {
        let options = RemoteOptions::default().token(BearerToken::new("secret").unwrap());
        let (_, cause) = refused(url, options).await;
        assert_eq!(
            cause,
            format!("refusing to send a token over an unencrypted connection to {host}")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_token_is_read_again_after_the_old_one_ended() {
    let server = TlsServer::start(Some("first"), false).await;
    let file = server.file("token", "first\n");
    let token = BearerToken::from_file(&file).unwrap();
    let mut options = server.options(&server.trusting()).token(token);
    options.limits.reconnect_timeout = Duration::from_secs(2);
    let remote = RemoteExecutor::connect(&server.url(), options)
        .await
        .unwrap();
    let process = remote.start(Start::shell("cat").stdin()).await.unwrap();

    write_private(&file, "second");
    *server.access.token.lock() = Some("second".to_owned());
    let mut state = remote.connection_state();
    server.access.end_token.notify_one();
    let recovering = |state: &ConnectionState| *state == ConnectionState::Recovering;
    expect_soon("the loss", state.wait_for(recovering))
        .await
        .unwrap();
    expect_soon("the new connection", remote.wait_connected())
        .await
        .unwrap();
    process.write("still here\n").await.unwrap();
    let first = process.events().next().await.unwrap();
    assert!(
        matches!(&first, Event::Output { bytes, .. } if bytes == "still here\n"),
        "{first:?}"
    );
    assert_eq!(server.access.heads.lock().len(), 2);

    // The token is revoked, and the file gets a new one after the old one was refused.
    *server.access.token.lock() = Some("third".to_owned());
    server.access.end_token.notify_one();
    expect_soon("a refusal", server.access.wait_for_heads(3)).await;
    write_private(&file, "third");
    expect_soon("a connection", remote.wait_connected())
        .await
        .unwrap();

    // The file never gets a new one.
    *server.access.token.lock() = Some("fourth".to_owned());
    server.access.end_token.notify_one();
    let failed = |state: &ConnectionState| matches!(state, ConnectionState::Failed { .. });
    let failed = expect_soon("the failure", state.wait_for(failed)).await;
    let failed = failed.unwrap().clone();
    let ConnectionState::Failed { reason, .. } = failed else {
        panic!("{failed:?}");
    };
    let text = "the server no longer accepts the token; could not reconnect within 2s: the server refused the token";
    assert!(reason.starts_with(text), "{reason}");
    drop(process);
    remote.close().await.unwrap();
}
