//! A connection that is not read while a request waits for admission.

use std::{
    fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc, time::Duration,
};

use outpost_rpc::Received;
use outpost_server::{AuthSettings, Authenticator, Listener, Server, Settings, WebSocketAuth};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use crate::peer::{Peer, server};

/// Opens a session with a process, and blocks its connection: a request waits for the bytes
/// of a long poll.
async fn blocked_connection(server: &Server) -> (Peer, String) {
    let mut peer = Peer::connect(server);
    let session = block(&mut peer).await;
    (peer, session)
}

async fn block(peer: &mut Peer) -> String {
    let session = peer.initialize(json!({"clientName": "t"})).await;
    let sleeps = json!({"processId": "p", "argv": ["sleep", "1000"], "cwd": "file:///", "env": {}});
    let started = peer.call("process/start", sleeps).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
    let pad = "x".repeat(900);
    let poll = json!({"processId": "p", "waitMs": 100_000_000, "pad": pad});
    peer.send(&json!({"id": "poll", "method": "process/read", "params": poll}))
        .await;
    peer.call("environment/status", json!({})).await;
    let list = json!({"id": "list", "method": "process/list", "params": {"pad": pad}});
    peer.send(&list).await;
    session
}

fn server_with_small_budget(admission_timeout: Duration) -> Server {
    server(Settings {
        in_flight_bytes: 1500,
        admission_timeout,
        // Paused time auto-advances while the process is started.
        silence_timeout: Duration::from_secs(1_000_000),
        ..Settings::default()
    })
}

async fn end(peer: &mut Peer) {
    peer.send(&json!({"method": "initialized"})).await;
    let ended = peer
        .call("process/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(ended["result"]["running"], true);
}

#[tokio::test(start_paused = true)]
async fn takeover_ends_a_blocked_connection() {
    let server = server_with_small_budget(Duration::from_secs(1_000_000));
    let (mut old, session) = blocked_connection(&server).await;
    let mut new = Peer::connect(&server);
    let start = Instant::now();
    let resume = json!({"resumeSessionId": session, "takeover": true});
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    let rejected = old.message().await;
    assert_eq!(rejected["id"], "poll");
    assert_eq!(rejected["error"]["code"], -32600);
    assert!(matches!(
        old.received().await,
        Some(Received::Close(Some(4001), _))
    ));
    let took = start.elapsed();
    assert!(took <= Duration::from_secs(1), "{took:?}");
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn lost_connection_is_noticed_after_the_admission_timeout() {
    let server = server_with_small_budget(Settings::default().admission_timeout);
    let (old, session) = blocked_connection(&server).await;
    drop(old);
    let mut new = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session});
    // sleep: virtual time, after which the connection is read again
    tokio::time::sleep(Settings::default().admission_timeout + Duration::from_millis(1)).await;
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn request_without_room_is_rejected_and_the_connection_goes_on() {
    let server = server_with_small_budget(Settings::default().admission_timeout);
    let (mut peer, _session) = blocked_connection(&server).await;
    let start = Instant::now();
    let rejected = peer.message().await;
    assert_eq!(rejected["id"], "list");
    assert_eq!(rejected["error"]["code"], -32001, "{rejected}");
    assert_eq!(start.elapsed(), Settings::default().admission_timeout);
    end(&mut peer).await;
}

fn write_token(path: &Path, token: &str) {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = file.open(path).expect("a file");
    file.write_all(token.as_bytes()).expect("a token");
}

/// Opens a WebSocket with a token, over TCP.
async fn connect_with_token(address: &str, token: &str) -> Peer {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a response"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", head.escape_ascii());
    let (read, write) = stream.into_split();
    Peer::over(Box::new(read), Box::new(write))
}

/// In real time, because the token is in a file.
#[tokio::test]
async fn revoked_token_ends_a_blocked_connection() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("token");
    write_token(&file, "first");
    let auth = AuthSettings {
        ws_auth: WebSocketAuth::CapabilityToken,
        ws_token_file: Some(file.clone()),
        ..AuthSettings::default()
    };
    let settings = Settings {
        in_flight_bytes: 1500,
        admission_timeout: Duration::from_secs(1_000_000),
        auth: Arc::new(Authenticator::load(auth).expect("a token")),
        ..Settings::default()
    };
    let listen = "ws://127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&listen, &settings).expect("a free port");
    let listener = listener.expect("a listener");
    let address = listener.url().replace("ws://", "");
    let server = server(settings);
    tokio::spawn(listener.serve(server.clone()));
    let following = server.clone();
    tokio::spawn(async move { following.follow_credential_files().await });

    let mut peer = connect_with_token(&address, "first").await;
    block(&mut peer).await;
    write_token(&file, "second");
    let revoked = Instant::now();
    let closed = async {
        loop {
            match peer.received().await {
                Some(Received::Close(code, _)) => break code,
                Some(_) => {}
                None => break None,
            }
        }
    };
    let code = tokio::time::timeout(Duration::from_secs(20), closed).await;
    assert_eq!(code, Ok(Some(4401)));
    let took = revoked.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}
