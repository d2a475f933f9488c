//! Tests that when the kernel lacks memory, processes or space, only the affected connection waits
//! and only the affected start fails.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Start, Transport, base64, deadline, file_uri, sh};
use serde_json::json;

use crate::outpost;
use shortage::{Call, Shortage};

#[path = "../../crates/process/tests/shortage/mod.rs"]
mod shortage;

const SYSTEM_ERROR: &str = "Cannot allocate memory (os error 12)";

/// The listener's delay before it retries.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Starts a server for the shortage, with a client whose process must not be affected.
async fn server_and_client(transport: Transport, trees: &str) -> (Server, Client) {
    let server = outpost().on(transport).args(&["--trees", trees]);
    let server = server.start().await;
    let client = server.client().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    check_unaffected(&client, "before").await;
    (server, client)
}

async fn check_unaffected(client: &Client, word: &str) {
    client.write("cat", format!("{word}\n"), word).await;
    client.wait_output("cat", &format!("{word}\n")).await;
}

/// Checks that the listener retries with a delay and logs the reason.
async fn check_accept_retries(shortage: &Shortage, server: &Server, since: Instant) {
    let tried = || (shortage.failed_calls() >= 5).then_some(());
    deadline::poll_until("more attempts to accept", tried).await;
    let rejected = shortage.failed_calls();
    let most = since.elapsed().as_millis() / RETRY_DELAY.as_millis() + 1;
    assert!(
        rejected as u128 <= most,
        "{rejected} attempts, {most} rests"
    );
    let logged = || {
        let log = server.stderr();
        let mut lines = log.lines();
        let matches = |line: &str| line.contains("accept failed") && line.contains(SYSTEM_ERROR);
        lines.any(matches).then_some(())
    };
    deadline::poll_until("the system error in the log", logged).await;
}

async fn check_connection_waits_for_memory(transport: Transport) {
    // With `group`, nothing is held ready for the next start, so open descriptors can be counted.
    let shortage = Shortage::install();
    let (server, client) = server_and_client(transport, "group").await;
    let used = server.stats().open_files();
    let since = Instant::now();
    shortage.begin(Call::Accept, libc::ENOMEM);
    let working = async {
        check_accept_retries(&shortage, &server, since).await;
        for number in 0..20 {
            check_unaffected(&client, &format!("line {number}")).await;
        }
        assert_eq!(
            server.stats().open_files(),
            used,
            "no descriptor is held for it"
        );
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
        shortage.end();
    };
    let (late, ()) = tokio::join!(server.connect(), working);
    late.handshake().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.terminate_and_wait("cat").await;
}

#[tokio::test]
async fn tcp_connection_waits_for_kernel_memory() {
    check_connection_waits_for_memory(Transport::WebSocket).await;
}

#[tokio::test]
async fn unix_connection_waits_for_kernel_memory() {
    check_connection_waits_for_memory(Transport::Unix).await;
}

#[tokio::test]
async fn unregistrable_connection_is_closed_alone() {
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, "group").await;
    let used = server.stats().open_files();
    let since = Instant::now();
    shortage.begin(Call::Watch, libc::ENOMEM);
    for _ in 0..5 {
        let mut rejected = TcpStream::connect(server.address()).expect("a listener");
        let deadline = Some(deadline::DEADLINE);
        rejected.set_read_timeout(deadline).expect("it has a limit");
        let _ = rejected.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut response = Vec::new();
        match rejected.read_to_end(&mut response) {
            Ok(_) => assert_eq!(response, b""),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    check_accept_retries(&shortage, &server, since).await;
    check_unaffected(&client, "meanwhile").await;
    assert_eq!(server.stats().open_files(), used);
    shortage.end();
    let late = server.client().await;
    assert_eq!(late.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.terminate_and_wait("cat").await;
}

/// Descriptors held ready for the next start; each spawner thread has one set.
const HELD_READY: usize = 8;

async fn check_start_fails(trees: &str) {
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, trees).await;
    let used = server.stats().open_files();
    for (id, start) in [
        ("pipes", sh("pipes", "exec sleep 1000")),
        ("input", sh("input", "exec sleep 1000").stdin()),
        ("terminal", sh("terminal", "exec sleep 1000").tty()),
    ] {
        // Fails at each step in turn, until the calls allowed are enough.
        let mut enough_for = 0;
        loop {
            shortage.begin_after(enough_for, Call::Watch, libc::ENOMEM);
            let request = client.request_start(start.clone()).await;
            let Err(rejected) = client.response(request).await else {
                break;
            };
            assert_eq!(rejected.code, -32603);
            assert!(rejected.message.ends_with(SYSTEM_ERROR), "{rejected:?}");
            enough_for += 1;
        }
        assert!((2..10).contains(&enough_for), "{id}: {enough_for}");
        client.terminate_and_wait(id).await;
    }
    shortage.begin(Call::Watch, libc::ENOMEM);
    for _ in 0..10 {
        client.start_fails(sh("p", "exec sleep 1000")).await;
    }
    check_unaffected(&client, "meanwhile").await;
    let none_sleeps = || {
        let sleeps = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.starts_with(b"sleep") || line.starts_with(b"/bin/sh"))
        };
        (!server.tag().living().iter().any(sleeps)).then_some(())
    };
    deadline::poll_until("the end of started processes", none_sleeps).await;
    let closed = || (server.stats().open_files() <= used + HELD_READY).then_some(());
    deadline::poll_until("its closed descriptors", closed).await;
    shortage.end();
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    client.terminate_and_wait("cat").await;
}

#[tokio::test]
async fn unwatchable_start_fails_and_leaves_nothing() {
    check_start_fails("auto").await;
}

#[tokio::test]
async fn unwatchable_start_by_a_subreaper_fails_and_leaves_nothing() {
    check_start_fails("subreaper").await;
}

/// Starts processes until one fails with this message, and returns how many are running.
async fn start_until_error(client: &Client, message: &str) -> usize {
    for number in 0..100 {
        let start = sh(&format!("p{number}"), "exec sleep 1000");
        let request = client.request_start(start).await;
        if let Err(rejected) = client.response(request).await {
            assert_eq!(rejected.code, -32603);
            assert!(rejected.message.ends_with(message), "{rejected:?}");
            return number;
        }
    }
    panic!("no failure injected");
}

async fn terminate_all(client: &Client, count: usize) {
    for number in 0..count {
        client.terminate_and_wait(&format!("p{number}")).await;
    }
}

#[tokio::test]
async fn missing_processes_fail_only_the_start() {
    let shortage = Shortage::install();
    for trees in ["auto", "subreaper", "group"] {
        let (server, client) = server_and_client(Transport::WebSocket, trees).await;
        shortage.begin(Call::Fork, libc::EAGAIN);
        let message = "Resource temporarily unavailable (os error 11)";
        let running = start_until_error(&client, message).await;
        check_unaffected(&client, "meanwhile").await;
        let late = server.client().await;
        start_until_error(&late, message).await;
        shortage.end();
        assert_eq!(late.run(sh("q", "echo hi")).await.text(), "hi\n");
        terminate_all(&client, running).await;
        client.terminate_and_wait("cat").await;
    }
}

/// The number of processes whose cgroup is freed for others.
const CGROUPS: usize = 8;

/// Spawner threads. Each may hold a cgroup for its next start, which others can't use.
const THREADS: usize = 2;

/// Retries a start: a cgroup is free a moment after its process has closed.
async fn start_when_possible(client: &Client, id: &str) {
    let starting = async {
        loop {
            let request = client.request_start(sh(id, "exec sleep 1000")).await;
            if client.response(request).await.is_ok() {
                return;
            }
        }
    };
    deadline::expect_soon("a free cgroup", starting).await;
}

#[tokio::test]
async fn missing_cgroup_fails_only_the_start() {
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, "auto").await;
    let info = client.call("environment/info", json!({})).await;
    for number in 0..CGROUPS {
        let id = format!("guest{number}");
        client.start(Start::new(&id, &["cat"]).stdin()).await;
    }
    shortage.begin(Call::MakeDirectory, libc::ENOSPC);
    if info["processTrees"] == "cgroup" {
        let message = "No space left on device (os error 28)";
        let running = start_until_error(&client, message).await;
        check_unaffected(&client, "meanwhile").await;
        terminate_all(&client, running).await;
        // Cgroups of processes that exited by themselves are reused.
        for number in 0..CGROUPS {
            let id = format!("guest{number}");
            client.write_last(&id, "").await;
            client.closed(&id).await;
        }
        for number in 0..CGROUPS - THREADS {
            start_when_possible(&client, &format!("heir{number}")).await;
        }
        shortage.end();
        let count = running + 2;
        for number in 0..count {
            let start = sh(&format!("again{number}"), "exec sleep 1000");
            client.start(start).await;
        }
        client.call("session/close", json!({})).await;
    } else {
        // Other kinds of trees need no directory.
        assert_eq!(client.run(sh("q", "echo hi")).await.text(), "hi\n");
        client.terminate_and_wait("cat").await;
    }
    drop(server);
}

/// Longer than Tokio's default keep-alive of idle blocking threads.
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(11);

#[tokio::test]
async fn blocking_work_waits_for_an_existing_thread() {
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, "group").await;
    let file = server.dir().join("file");
    std::fs::write(&file, "content").unwrap();
    // sleep: a thread that stays has no event
    tokio::time::sleep(THREAD_KEEP_ALIVE).await;
    shortage.begin(Call::Fork, libc::EAGAIN);
    let mut requests = Vec::new();
    for _ in 0..20 {
        let read = json!({"path": file_uri(&file)});
        requests.push(client.request("fs/readFile", read).await);
    }
    for id in requests {
        let read = client.response(id).await.expect("read");
        assert_eq!(read["dataBase64"], base64("content"));
    }
    check_unaffected(&client, "meanwhile").await;
    client.terminate_and_wait("cat").await;
}

/// Clients whose file operations hang: together they use all threads of file operations.
const HUNG_CLIENTS: usize = 8;

/// Concurrent file operations of one client.
const FILE_OPERATIONS: usize = 32;

#[tokio::test]
async fn hung_file_operations_do_not_stop_other_clients() {
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, "group").await;
    let file = server.dir().join("file");
    std::fs::write(&file, "content").unwrap();
    shortage.hang(Call::MakeDirectory);
    let mut hung = Vec::new();
    for number in 0..HUNG_CLIENTS {
        let other = server.client().await;
        for operation in 0..FILE_OPERATIONS {
            let path = server.dir().join(format!("{number}-{operation}"));
            let create = json!({"path": file_uri(&path), "recursive": false});
            other.request("fs/createDirectory", create).await;
        }
        hung.push(other);
    }
    let all_hang = || (shortage.failed_calls() == HUNG_CLIENTS * FILE_OPERATIONS).then_some(());
    deadline::poll_until("hanging operations", all_hang).await;
    let read = client.call("fs/readFile", json!({"path": file_uri(&file)}));
    assert_eq!(read.await["dataBase64"], base64("content"));
    check_unaffected(&client, "meanwhile").await;
    shortage.end();
    client.terminate_and_wait("cat").await;
}

/// The file is large enough to be sent in blocks.
#[tokio::test]
async fn hung_read_of_a_large_file_does_not_stop_its_connection() {
    const FILE_BYTES: usize = 16 << 20;
    let shortage = Shortage::install();
    let (server, client) = server_and_client(Transport::WebSocket, "group").await;
    let path = server.dir().join("file");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(FILE_BYTES as u64).unwrap();
    shortage.hang(Call::ReadFarther);
    let read = json!({"path": file_uri(&path)});
    let read = client.request("fs/readFile", read).await;
    let hangs = || (shortage.failed_calls() == 1).then_some(());
    deadline::poll_until("a hanging read", hangs).await;
    check_unaffected(&client, "meanwhile").await;
    shortage.end();
    let read = client.response(read).await.expect("read");
    let base64_len = read["dataBase64"].as_str().map(str::len);
    assert_eq!(base64_len, Some(FILE_BYTES.div_ceil(3) * 4));
    client.terminate_and_wait("cat").await;
}
