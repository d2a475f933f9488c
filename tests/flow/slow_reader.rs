//! Tests that a client that stops reading costs bounded memory and blocks only its own process.

use std::time::Duration;

use outpost_testkit::{Client, ProcStats, Server, Start, deadline, programs, sh};

use crate::{outpost, ready, ready_with};

/// The window, the largest socket buffers, and the child's pipe.
const MAX_BUFFERED: u64 = 16 * 1024 * 1024;

/// The memory that the server may use for a client that doesn't read.
const MEMORY_KIB: u64 = 24 * 1024;

/// A process that has written nothing for this long is blocked.
const QUIET: Duration = Duration::from_millis(400);

async fn pid(client: &Client, id: &str) -> ProcStats {
    let entry = client.listed(id).await.expect("an entry");
    ProcStats::of(i32::try_from(entry["pid"].as_i64().expect("a pid")).expect("a pid"))
}

/// Waits until a process is blocked and returns how much it has written.
async fn wait_until_blocked(process: ProcStats) -> u64 {
    deadline::expect_soon("a process to be blocked", async {
        let mut before = process.written();
        loop {
            // sleep: a blocked process produces no event
            tokio::time::sleep(QUIET).await;
            let now = process.written();
            if now == before {
                return now;
            }
            before = now;
        }
    })
    .await
}

fn check_memory_growth(server: &Server, before: u64) {
    let grown = server.stats().peak_rss_kib().saturating_sub(before);
    assert!(grown < MEMORY_KIB, "the server grew by {grown} KiB");
}

#[tokio::test]
async fn stopped_reader_blocks_its_process_in_bounded_memory() {
    let (server, client) = ready().await;
    let before = server.stats().peak_rss_kib();
    client.only_count("flood");
    client
        .start(sh("flood", "read x; exec cat /dev/zero").stdin())
        .await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    client.request_write("flood", "\n", "w").await;
    let written = wait_until_blocked(flood).await;
    assert!(written > 0 && written < MAX_BUFFERED, "{written} bytes");
    check_memory_growth(&server, before);

    // A client that reads again receives all of it, and more.
    client.resume_reading();
    client
        .wait_count("flood", written as usize + 1024 * 1024)
        .await;
    assert!(client.terminate("flood").await);
    client.exited("flood").await;
    check_memory_growth(&server, before);
}

#[tokio::test]
async fn returning_reader_loses_nothing() {
    let (_server, client) = ready().await;
    let bytes = 24 * 1024 * 1024;
    client.only_count("p");
    let script = format!("read x; exec head -c {bytes} /dev/zero");
    client.start(sh("p", &script).stdin()).await;
    let process = pid(&client, "p").await;
    client.stop_reading();
    client.request_write("p", "\n", "w").await;
    wait_until_blocked(process).await;
    client.resume_reading();
    client.wait_count("p", bytes).await;
    let log = client
        .event_log_until("p", "the close", |log| log.is_closed())
        .await;
    assert_eq!((log.code(), client.counted("p").bytes), (0, bytes));
}

#[tokio::test]
async fn window_is_configurable() {
    let (_server, client) =
        ready_with(&["--window-bytes", "64KiB", "--retain-bytes", "64KiB"]).await;
    let (server, wide) = ready_with(&["--window-bytes", "16MiB", "--retain-bytes", "64KiB"]).await;
    let mut written = Vec::new();
    for client in [&client, &wide] {
        client.only_count("flood");
        client
            .start(sh("flood", "read x; exec cat /dev/zero").stdin())
            .await;
        let flood = pid(client, "flood").await;
        client.stop_reading();
        client.request_write("flood", "\n", "w").await;
        written.push(wait_until_blocked(flood).await);
    }
    let difference = written[1].saturating_sub(written[0]);
    assert!(difference > 8 * 1024 * 1024, "{written:?}");
    let rss = server.stats().peak_rss_kib();
    assert!(rss < 64 * 1024, "{rss} KiB");
}

#[tokio::test]
async fn other_processes_of_the_connection_are_not_blocked() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client
        .start(sh("flood", "read x; exec cat /dev/zero").stdin())
        .await;
    let file = server.dir().join("ticks");
    let script = format!(
        "while read x; do echo $x; echo $x >> {}; done",
        file.display()
    );
    client.start(sh("quiet", &script).stdin()).await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    client.request_write("flood", "\n", "w").await;
    wait_until_blocked(flood).await;
    for n in 0..20 {
        client
            .request_write("quiet", format!("tick{n}\n"), &format!("w{n}"))
            .await;
        deadline::poll_until(&format!("tick {n}"), || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.ends_with(&format!("tick{n}\n")).then_some(())
        })
        .await;
    }
    client.resume_reading();
    client.wait_output("quiet", "tick19\n").await;
    client.terminate_and_wait("quiet").await;
    client.terminate("flood").await;
}

#[tokio::test]
async fn other_connections_are_not_affected() {
    let server = outpost().start().await;
    let mut blocked = Vec::new();
    for _ in 0..5 {
        let client = server.client().await;
        client.only_count("flood");
        client
            .start(sh("flood", "read x; exec cat /dev/zero").stdin())
            .await;
        let flood = pid(&client, "flood").await;
        client.stop_reading();
        client.request_write("flood", "\n", "w").await;
        blocked.push((client, flood));
    }
    let client = server.client().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    for n in 0..50 {
        client
            .write("cat", format!("echo{n}\n"), &format!("w{n}"))
            .await;
        client.wait_output("cat", &format!("echo{n}\n")).await;
    }
    for (_, flood) in &blocked {
        wait_until_blocked(*flood).await;
    }
    client.terminate_and_wait("cat").await;
    let rss = server.stats().peak_rss_kib();
    assert!(rss < 5 * MEMORY_KIB, "{rss} KiB");
}

#[tokio::test]
async fn blocked_process_can_be_terminated() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    wait_until_blocked(flood).await;
    client
        .request(
            "process/terminate",
            serde_json::json!({"processId": "flood"}),
        )
        .await;
    server.tag().alive(1).await;
    client.resume_reading();
    assert_eq!(client.exited("flood").await.code(), 137);
}

#[tokio::test]
async fn detached_process_is_not_blocked() {
    let (server, client) = ready().await;
    let before = server.stats().peak_rss_kib();
    let file = server.dir().join("done");
    let script = format!(
        "read x; head -c 64M /dev/zero; echo over > {}; exec sleep 1000",
        file.display()
    );
    client.only_count("p");
    client.start(sh("p", &script).stdin()).await;
    client.stop_reading();
    client.request_write("p", "\n", "w").await;
    wait_until_blocked(pid_of_child(&server).await).await;
    assert!(!file.exists());
    client.cut().await;
    deadline::poll_until("all output written", || file.exists().then_some(())).await;
    check_memory_growth(&server, before);
}

/// The server's only child.
async fn pid_of_child(server: &Server) -> ProcStats {
    let pid = deadline::poll_until("the writer", || {
        let living = server.tag().living();
        let head = living.iter().find(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name == "head\n")
        });
        head.copied()
    })
    .await;
    ProcStats::of(pid)
}
