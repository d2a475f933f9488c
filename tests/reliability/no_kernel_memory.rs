//! Where the kernel has no memory for a connection, or for what a start has to wait for, that one
//! is refused or waits, and everybody else goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Start, Transport, patience, sh};

use crate::outpost;
use shortage::{Call, Shortage};

#[path = "../../crates/process/tests/shortage/mod.rs"]
mod shortage;

const SYSTEM_SAYS: &str = "Cannot allocate memory (os error 12)";

/// How long a listener rests before it tries again.
const REST: Duration = Duration::from_millis(50);

/// A server that will run short, and a client at work who must not notice.
async fn short(transport: Transport, trees: &str) -> (Shortage, Server, Client) {
    let shortage = Shortage::to_come();
    let server = outpost().on(transport).args(&["--trees", trees]);
    let server = server.start().await;
    let client = server.client().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    goes_on(&client, "before").await;
    (shortage, server, client)
}

async fn goes_on(client: &Client, word: &str) {
    client.write("cat", format!("{word}\n"), word).await;
    client.sees("cat", &format!("{word}\n")).await;
}

/// The listener tries again and again, but not without rest, and says why.
async fn tries_again(shortage: &Shortage, server: &Server, since: Instant) {
    let tried = || (shortage.refused() >= 5).then_some(());
    patience::seen("more attempts to accept", tried).await;
    let refused = shortage.refused();
    let most = since.elapsed().as_millis() / REST.as_millis() + 1;
    assert!(refused as u128 <= most, "{refused} attempts, {most} rests");
    let logged = || {
        let log = server.stderr();
        let mut lines = log.lines();
        let said = |line: &str| line.contains("failed to accept") && line.contains(SYSTEM_SAYS);
        lines.any(said).then_some(())
    };
    patience::seen("the system's words in the log", logged).await;
}

async fn a_connection_waits_for_memory(transport: Transport) {
    // Nothing is kept ready for the next start there, so what is open can be counted.
    let (shortage, server, client) = short(transport, "group").await;
    let used = server.vitals().open_files();
    let since = Instant::now();
    shortage.begin(Call::Accept, libc::ENOMEM);
    let working = async {
        tries_again(&shortage, &server, since).await;
        for number in 0..20 {
            goes_on(&client, &format!("line {number}")).await;
        }
        assert_eq!(server.vitals().open_files(), used, "nothing is kept for it");
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
        shortage.end();
    };
    let (late, ()) = tokio::join!(server.connect(), working);
    late.shake_hands().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.end("cat").await;
}

#[tokio::test]
async fn a_connection_over_tcp_waits_until_there_is_memory_for_it() {
    a_connection_waits_for_memory(Transport::WebSocket).await;
}

#[tokio::test]
async fn a_connection_over_a_unix_socket_waits_until_there_is_memory_for_it() {
    a_connection_waits_for_memory(Transport::Unix).await;
}

#[tokio::test]
async fn a_connection_that_cannot_be_waited_for_is_closed_and_nobody_else() {
    let (shortage, server, client) = short(Transport::WebSocket, "group").await;
    let used = server.vitals().open_files();
    let since = Instant::now();
    shortage.begin(Call::Watch, libc::ENOMEM);
    for _ in 0..5 {
        let mut refused = TcpStream::connect(server.address()).expect("somebody listens");
        let patience = Some(patience::PATIENCE);
        refused.set_read_timeout(patience).expect("it has a limit");
        let _ = refused.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut answer = Vec::new();
        match refused.read_to_end(&mut answer) {
            Ok(_) => assert_eq!(answer, b""),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    tries_again(&shortage, &server, since).await;
    goes_on(&client, "meanwhile").await;
    assert_eq!(server.vitals().open_files(), used);
    shortage.end();
    let late = server.client().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.end("cat").await;
}

/// What is kept ready for the next start, of which a thread that starts programs has one.
const READY: usize = 8;

async fn a_start_is_refused(trees: &str) {
    let (shortage, server, client) = short(Transport::WebSocket, trees).await;
    let used = server.vitals().open_files();
    shortage.begin(Call::Watch, libc::ENOMEM);
    for _ in 0..10 {
        for start in [
            sh("p", "exec sleep 1000"),
            sh("p", "exec sleep 1000").stdin(),
            sh("p", "exec sleep 1000").tty(),
        ] {
            let refused = client.start_fails(start).await;
            assert_eq!(refused.code, -32603);
            assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
        }
    }
    goes_on(&client, "meanwhile").await;
    let none_sleeps = || {
        let sleeps = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.starts_with(b"sleep") || line.starts_with(b"/bin/sh"))
        };
        (!server.mark().living().iter().any(sleeps)).then_some(())
    };
    patience::seen("the end of what was started", none_sleeps).await;
    let closed = || (server.vitals().open_files() <= used + READY).then_some(());
    patience::seen("the end of what was open for it", closed).await;
    shortage.end();
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.end("cat").await;
}

#[tokio::test]
async fn a_start_that_cannot_be_waited_for_is_refused_and_leaves_nothing() {
    a_start_is_refused("auto").await;
}

#[tokio::test]
async fn a_start_by_a_keeper_that_cannot_be_waited_for_is_refused_and_leaves_nothing() {
    a_start_is_refused("keeper").await;
}
