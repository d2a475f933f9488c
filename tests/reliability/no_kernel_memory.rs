//! Where the kernel has no memory, no processes or no room for what a connection or a start needs,
//! that one waits or is refused, and everybody else goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Start, Transport, base64, file_uri, patience, sh};
use serde_json::json;

use crate::outpost;
use shortage::{Call, Shortage};

#[path = "../../crates/process/tests/shortage/mod.rs"]
mod shortage;

const SYSTEM_SAYS: &str = "Cannot allocate memory (os error 12)";

/// How long a listener rests before it tries again.
const REST: Duration = Duration::from_millis(50);

/// A server that will run short, and a client at work who must not notice.
async fn short(transport: Transport, trees: &str) -> (Server, Client) {
    let server = outpost().on(transport).args(&["--trees", trees]);
    let server = server.start().await;
    let client = server.client().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    goes_on(&client, "before").await;
    (server, client)
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
    let shortage = Shortage::to_come();
    let (server, client) = short(transport, "group").await;
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
    let shortage = Shortage::to_come();
    let (server, client) = short(Transport::WebSocket, "group").await;
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
    let shortage = Shortage::to_come();
    let (server, client) = short(Transport::WebSocket, trees).await;
    let used = server.vitals().open_files();
    for (id, start) in [
        ("pipes", sh("pipes", "exec sleep 1000")),
        ("input", sh("input", "exec sleep 1000").stdin()),
        ("terminal", sh("terminal", "exec sleep 1000").tty()),
    ] {
        // For none, for one, …: each step fails once, and some number is enough.
        let mut enough_for = 0;
        loop {
            shortage.begin_after(enough_for, Call::Watch, libc::ENOMEM);
            let asked = client.request_start(start.clone()).await;
            let Err(refused) = client.answer(asked).await else {
                break;
            };
            assert_eq!(refused.code, -32603);
            assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
            enough_for += 1;
        }
        assert!((2..10).contains(&enough_for), "{id}: {enough_for}");
        client.end(id).await;
    }
    shortage.begin(Call::Watch, libc::ENOMEM);
    for _ in 0..10 {
        client.start_fails(sh("p", "exec sleep 1000")).await;
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

/// Starts one after the other until one is refused in these words; says how many run.
async fn starts_until(client: &Client, words: &str) -> usize {
    for number in 0..100 {
        let start = sh(&format!("p{number}"), "exec sleep 1000");
        let asked = client.request_start(start).await;
        if let Err(refused) = client.answer(asked).await {
            assert_eq!(refused.code, -32603);
            assert!(refused.message.ends_with(words), "{refused:?}");
            return number;
        }
    }
    panic!("nothing is lacking");
}

async fn ends(client: &Client, count: usize) {
    for number in 0..count {
        client.end(&format!("p{number}")).await;
    }
}

#[tokio::test]
async fn no_processes_refuse_a_start_and_nothing_else() {
    let shortage = Shortage::to_come();
    for trees in ["auto", "keeper", "group"] {
        let (server, client) = short(Transport::WebSocket, trees).await;
        shortage.begin(Call::Fork, libc::EAGAIN);
        let words = "Resource temporarily unavailable (os error 11)";
        let running = starts_until(&client, words).await;
        goes_on(&client, "meanwhile").await;
        let late = server.client().await;
        starts_until(&late, words).await;
        shortage.end();
        assert_eq!(late.run(sh("q", "echo hi")).await.text(), "hi\n");
        ends(&client, running).await;
        client.end("cat").await;
    }
}

/// How many have a place that becomes free.
const PLACES: usize = 8;

/// Threads that start programs. Each may have a place for its next one, which others can't use.
const THREADS: usize = 2;

/// A place is free a moment after its process has closed.
async fn starts_once_it_can(client: &Client, id: &str) {
    let starting = async {
        loop {
            let asked = client.request_start(sh(id, "exec sleep 1000")).await;
            if client.answer(asked).await.is_ok() {
                return;
            }
        }
    };
    patience::soon("a place that was somebody's", starting).await;
}

#[tokio::test]
async fn no_room_for_the_place_of_a_tree_refuses_a_start_and_nothing_else() {
    let shortage = Shortage::to_come();
    let (server, client) = short(Transport::WebSocket, "auto").await;
    let info = client.call("environment/info", json!({})).await;
    for number in 0..PLACES {
        let id = format!("guest{number}");
        client.start(Start::new(&id, &["cat"]).stdin()).await;
    }
    shortage.begin(Call::MakeDirectory, libc::ENOSPC);
    if info["processTrees"] == "cgroup" {
        let words = "No space left on device (os error 28)";
        let running = starts_until(&client, words).await;
        goes_on(&client, "meanwhile").await;
        ends(&client, running).await;
        // Places of those that ended by themselves are there for others.
        for number in 0..PLACES {
            let id = format!("guest{number}");
            client.write_last(&id, "").await;
            client.closed(&id).await;
        }
        for number in 0..PLACES - THREADS {
            starts_once_it_can(&client, &format!("heir{number}")).await;
        }
        shortage.end();
        let count = running + 2;
        for number in 0..count {
            let start = sh(&format!("again{number}"), "exec sleep 1000");
            client.start(start).await;
        }
        client.call("session/close", json!({})).await;
    } else {
        // Other kinds have no place in the file system.
        assert_eq!(client.run(sh("q", "echo hi")).await.text(), "hi\n");
        client.end("cat").await;
    }
    drop(server);
}

/// How long a thread that has nothing to do stays in a runtime that isn't told otherwise, and more.
const THREADS_LEAVE: Duration = Duration::from_secs(11);

#[tokio::test]
async fn what_needs_a_thread_where_none_can_be_had_waits_for_one_that_is_there() {
    let shortage = Shortage::to_come();
    let (server, client) = short(Transport::WebSocket, "group").await;
    let file = server.folder().join("file");
    std::fs::write(&file, "content").unwrap();
    // sleep: a thread that stays has no event
    tokio::time::sleep(THREADS_LEAVE).await;
    shortage.begin(Call::Fork, libc::EAGAIN);
    let mut asked = Vec::new();
    for _ in 0..20 {
        let read = json!({"path": file_uri(&file)});
        asked.push(client.request("fs/readFile", read).await);
    }
    for id in asked {
        let read = client.answer(id).await.expect("it is read");
        assert_eq!(read["dataBase64"], base64("content"));
    }
    goes_on(&client, "meanwhile").await;
    client.end("cat").await;
}
