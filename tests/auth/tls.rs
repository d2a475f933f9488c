//! Tests `wss://` listeners.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outpost_testkit::deadline::{expect_soon, poll_until};
use outpost_testkit::http_client::{UPGRADE, get_as};
use outpost_testkit::{Server, sh};
use rustix::process::Signal;
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::certificates::{Authority, TlsClient, TlsTunnel, secure_port};
use super::secret_file;
use super::tls_server::TlsServer;
use crate::outpost;

#[tokio::test]
async fn command_runs_over_tls() {
    let host = TlsServer::start(&[]).await;
    let client = host.server.connect_to(&host.tunnel.url()).await;
    client.handshake().await;
    let log = client.run(sh("p", "echo over TLS")).await;
    assert_eq!(log.stdout(), "over TLS\n");
    let strange = TlsClient::trusting(&Authority::new());
    let port = secure_port(&host.server);
    assert!(strange.connect(port).await.is_err(), "another authority");
    // The certificate protects from DNS rebinding, so any `Host` may be used.
    let named = get_as(host.tunnel.address(), "build.example", "/", UPGRADE).await;
    assert_eq!(named.status, 101);
}

#[tokio::test]
async fn tls_1_2_and_1_3_with_http_1_1_are_spoken() {
    let host = TlsServer::start(&[]).await;
    let port = secure_port(&host.server);
    static ONLY_1_2: &[&SupportedProtocolVersion] = &[&TLS12];
    static ONLY_1_3: &[&SupportedProtocolVersion] = &[&TLS13];
    for (versions, expected) in [
        (ONLY_1_2, ProtocolVersion::TLSv1_2),
        (ONLY_1_3, ProtocolVersion::TLSv1_3),
    ] {
        let mut client = TlsClient::trusting(&host.authority).versions(versions);
        client.protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = client.connect(port).await.expect("a handshake");
        let (_, tls) = stream.get_ref();
        assert_eq!(tls.protocol_version(), Some(expected));
        assert_eq!(tls.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[tokio::test]
async fn client_without_tls_gets_no_answer() {
    let host = TlsServer::start(&[]).await;
    let address = ("127.0.0.1", secure_port(&host.server));
    let mut plain = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    plain.write_all(request).await.expect("a request");
    let mut answer = Vec::new();
    let end = expect_soon("the end", plain.read_to_end(&mut answer)).await;
    assert!(end.is_err() || !answer.starts_with(b"HTTP"), "{answer:?}");
}

/// Waits for a line of the server's log.
async fn expect_log(server: &Server, text: &str) {
    poll_until(text, || server.stderr().contains(text).then_some(())).await;
}

/// Replaces the certificate, and waits until new connections get it.
async fn replace_certificate(host: &TlsServer, reload: impl Fn()) -> TlsClient {
    let authority = Authority::new();
    authority.for_localhost().write(host.files.path());
    reload();
    let client = TlsClient::trusting(&authority);
    let port = secure_port(&host.server);
    let replaced = async {
        while client.connect(port).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    expect_soon("the new certificate", replaced).await;
    client
}

#[tokio::test]
async fn certificate_is_replaced_under_load() {
    let host = TlsServer::start(&[]).await;
    let flooding = host.server.connect_to(&host.tunnel.url()).await;
    flooding.handshake().await;
    flooding.only_count("flood");
    flooding.start(sh("flood", "exec cat /dev/zero")).await;
    flooding.wait_count("flood", 1 << 20).await;
    for _ in 0..3 {
        let client = replace_certificate(&host, || {}).await;
        let before = flooding.counted("flood").bytes;
        flooding.wait_count("flood", before + (1 << 20)).await;
        let tunnel = TlsTunnel::to(&host.server, client).await;
        let new = host.server.connect_to(&tunnel.url()).await;
        new.handshake().await;
        new.check_alive().await;
    }
    assert!(!flooding.is_over(), "no connection was dropped");
    assert!(flooding.terminate("flood").await, "it was running");
}

#[tokio::test]
async fn hangup_reloads_the_certificate_and_ends_nothing() {
    let host = TlsServer::start(&[]).await;
    let client = host.server.connect_to(&host.tunnel.url()).await;
    client.handshake().await;
    replace_certificate(&host, || host.server.signal(Signal::HUP)).await;
    expect_log(&host.server, "credentials reloaded").await;
    client.check_alive().await;
}

#[tokio::test]
async fn broken_pair_is_logged_and_the_old_one_stays() {
    let host = TlsServer::start(&[]).await;
    let client = TlsClient::trusting(&host.authority);
    let port = secure_port(&host.server);
    let key = host.files.path().join("key.pem");
    let old = fs::read_to_string(&key).expect("the key");
    let other = tempfile::tempdir().expect("a directory");
    Authority::new().for_localhost().write(other.path());
    let other = fs::read_to_string(other.path().join("key.pem")).expect("a key");
    let broken = [("broken", 0o600), (&other, 0o600), (&old, 0o644)];
    for (number, (text, mode)) in broken.into_iter().enumerate() {
        secret_file(host.files.path(), "key.pem", text);
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("a mode");
        let message = "cannot reload the certificate; keeping the old one";
        poll_until("the next message", || {
            (host.server.stderr().matches(message).count() > number).then_some(())
        })
        .await;
        client.connect(port).await.expect("the old one");
    }
    // Once it can be used, it is used.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    replace_certificate(&host, || {}).await;
}

/// Starts a server with a certificate of its own, and returns it with the fingerprint.
async fn self_signed(state: &str) -> (Server, String) {
    let server = outpost()
        .listen("wss://127.0.0.1:0")
        .args(&["--tls-self-signed"])
        .env("XDG_STATE_HOME", state)
        .start()
        .await;
    let log = poll_until("the fingerprint", || {
        let log = server.stderr();
        log.contains("fingerprint sha256:").then_some(log)
    });
    let log = log.await;
    let line = log
        .lines()
        .find_map(|line| line.strip_prefix("fingerprint "));
    let fingerprint = line.expect("a line of its own").to_owned();
    (server, fingerprint)
}

#[tokio::test]
async fn self_signed_certificate_is_kept_and_can_be_pinned() {
    let state = tempfile::tempdir().expect("a directory");
    let path = state.path().to_str().expect("a path");
    let (server, first) = self_signed(path).await;
    assert_eq!(first.len(), "sha256:".len() + 64, "{first}");
    let url = format!("wss://localhost:{}", secure_port(&server));
    let pinned = [
        "run",
        "--on",
        &url,
        "--fingerprint",
        &first,
        "--",
        "echo",
        "hi",
    ];
    let output = outpost().run(&pinned).await;
    assert_eq!(output.stdout, "hi\n", "{output:?}");
    drop(server);
    assert_eq!(self_signed(path).await.1, first);
    for name in ["key.pem", "cert.pem"] {
        let file = state.path().join("outpost/tls").join(name);
        let mode = fs::metadata(file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn listener_that_is_not_protected_is_an_error() {
    let token = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let auth = ["--ws-auth", "capability-token", "--ws-token-sha256", token];
    let state = tempfile::tempdir().expect("a directory");
    let state = state.path().to_str().expect("a path");
    for (args, text) in [
        (
            vec!["--listen", "wss://127.0.0.1:0"],
            "cannot listen on wss://127.0.0.1:0 without a certificate; add --tls-cert and --tls-key, or --tls-self-signed",
        ),
        (vec!["--tls-key", "/x"], "--tls-key needs --tls-cert"),
        (vec!["--tls-cert", "/x"], "--tls-cert needs --tls-key"),
        (
            [&["--listen", "ws://0.0.0.0:0"], &auth[..]].concat(),
            "refusing to listen on 0.0.0.0:0 without TLS; use wss:// with --tls-cert and --tls-key or with --tls-self-signed, or --plaintext-behind-proxy if a proxy adds TLS",
        ),
        (
            vec!["--listen", "wss://[::]:0", "--tls-self-signed"],
            "refusing to listen on [::]:0 without authentication; add --ws-auth, --tokens-file or --tls-client-ca, or listen on a loopback address or a unix socket",
        ),
        (
            vec!["--listen", "ws://0.0.0.0:0", "--plaintext-behind-proxy"],
            "refusing to listen on 0.0.0.0:0 without authentication; add --ws-auth, --tokens-file or --tls-client-ca, or listen on a loopback address or a unix socket",
        ),
    ] {
        let command = outpost().env("XDG_STATE_HOME", state);
        // Otherwise the cleanup of a killed server's cgroup may be logged first.
        let serve = ["serve", "--log-level", "off"];
        let output = command.run(&[&serve, &args[..]].concat()).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert_eq!(output.stderr, format!("outpost: {text}\n"));
    }
}

#[tokio::test]
async fn plain_listener_behind_a_proxy_needs_a_token_and_a_known_host() {
    let token = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let server = outpost()
        .listen("ws://0.0.0.0:0")
        .args(&[
            "--plaintext-behind-proxy",
            "--allowed-hosts",
            "build.example",
        ])
        .args(&["--ws-auth", "capability-token", "--ws-token-sha256", token])
        .start()
        .await;
    let port = server.urls()[1].rsplit_once(':').expect("a port").1;
    let address = format!("127.0.0.1:{port}");
    let bearer = [UPGRADE, &["Authorization: Bearer abc"]].concat();
    for (host, headers, status) in [
        ("build.example", &*bearer, 101),
        ("build.example", UPGRADE, 401),
        ("evil.example", &*bearer, 403),
    ] {
        let response = get_as(&address, host, "/", headers).await;
        assert_eq!(response.status, status, "{host}");
    }
}
