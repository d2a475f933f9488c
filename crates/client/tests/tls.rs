//! Connections with TLS.

use std::sync::Arc;

use outpost_client::{
    Error, Event, Executor as _, RemoteExecutor, RemoteOptions, Start, TlsConfig,
};
use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
use outpost_rpc::ws::accept_key;
use outpost_server::{Host, Peer, Server, Settings};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// Starts a server for `localhost` and returns its port and the certificate to trust.
async fn serve() -> (u16, TlsConfig) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let spawner = Spawner::new(SpawnerOptions::default()).unwrap();
    let host = Host::detect(spawner.tree_kind());
    let engine = Engine::new(spawner, Limits::default());
    let server = Server::new(engine, host, Settings::default());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let key = head
                .lines()
                .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
            let accept = accept_key(key.unwrap().as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            let (read, write) = split(stream);
            let server = server.clone();
            tokio::spawn(async move {
                server
                    .serve_websocket(Box::new(read), Box::new(write), Peer::Unverified)
                    .await;
            });
        }
    });
    (port, TlsConfig::with_roots([certificate.to_vec()]).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_certificates_are_accepted() {
    let (port, trusting) = serve().await;
    let url = format!("wss://localhost:{port}/any/path");
    let options = RemoteOptions::default().tls(trusting);
    let remote = RemoteExecutor::connect(&url, options.clone())
        .await
        .unwrap();
    let process = remote.start(Start::shell("echo secret")).await.unwrap();
    let first = process.events().next().await.unwrap();
    assert!(
        matches!(&first, Event::Output { bytes, .. } if bytes == "secret\n"),
        "{first:?}"
    );
    remote.close().await.unwrap();

    // The system does not trust the certificate, and it is for another name.
    for (url, options) in [
        (url, RemoteOptions::default()),
        (format!("wss://127.0.0.1:{port}"), options),
    ] {
        let error = RemoteExecutor::connect(&url, options).await.err().unwrap();
        assert!(matches!(error, Error::Unreachable { .. }));
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("certificate"), "{cause}");
    }
}
