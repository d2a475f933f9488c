//! A client that stops reading costs bounded memory and holds back its own process alone.

use std::time::Duration;

use outpost_testkit::{Client, Server, Start, Vitals, patience, programs, sh};

use crate::{outpost, ready, ready_with};

/// The window, what fits into the sockets' buffers at most, and the child's pipe.
const AHEAD: u64 = 16 * 1024 * 1024;

/// What the server may need for a client that doesn't read.
const MEMORY_KIB: u64 = 24 * 1024;

/// How long nothing must have been written to say that a process is held back.
const QUIET: Duration = Duration::from_millis(400);

async fn pid(client: &Client, id: &str) -> Vitals {
    let entry = client.listed(id).await.expect("an entry");
    Vitals::of(i32::try_from(entry["pid"].as_i64().expect("a pid")).expect("a pid"))
}

/// Waits until a process can't write any more; says how much it has written.
async fn held_back(process: Vitals) -> u64 {
    patience::soon("a process to be held back", async {
        let mut before = process.written();
        loop {
            // sleep: being held back shows in nothing happening
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

fn bounded(server: &Server, before: u64) {
    let grown = server.vitals().peak_rss_kib().saturating_sub(before);
    assert!(grown < MEMORY_KIB, "the server grew by {grown} KiB");
}

#[tokio::test]
async fn a_reader_that_stops_holds_back_its_process_in_bounded_memory() {
    let (server, client) = ready().await;
    let before = server.vitals().peak_rss_kib();
    client.only_count("flood");
    client
        .start(sh("flood", "read x; exec cat /dev/zero").stdin())
        .await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    client.request_write("flood", "\n", "w").await;
    let written = held_back(flood).await;
    assert!(written > 0 && written < AHEAD, "{written} bytes");
    bounded(&server, before);

    // Who reads again gets all of it, and more.
    client.read_on();
    client.counts("flood", written as usize + 1024 * 1024).await;
    assert!(client.terminate("flood").await);
    client.exited("flood").await;
    bounded(&server, before);
}

#[tokio::test]
async fn nothing_is_lost_to_a_reader_that_comes_back() {
    let (_server, client) = ready().await;
    let bytes = 24 * 1024 * 1024;
    client.only_count("p");
    let script = format!("read x; exec head -c {bytes} /dev/zero");
    client.start(sh("p", &script).stdin()).await;
    let process = pid(&client, "p").await;
    client.stop_reading();
    client.request_write("p", "\n", "w").await;
    held_back(process).await;
    client.read_on();
    client.counts("p", bytes).await;
    let story = client
        .story_until("p", "the close", |story| story.is_closed())
        .await;
    assert_eq!((story.code(), client.counted("p").bytes), (0, bytes));
}

#[tokio::test]
async fn the_window_can_be_chosen() {
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
        written.push(held_back(flood).await);
    }
    let difference = written[1].saturating_sub(written[0]);
    assert!(difference > 8 * 1024 * 1024, "{written:?}");
    let rss = server.vitals().peak_rss_kib();
    assert!(rss < 64 * 1024, "{rss} KiB");
}

#[tokio::test]
async fn other_processes_of_the_same_connection_are_not_held_back() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client
        .start(sh("flood", "read x; exec cat /dev/zero").stdin())
        .await;
    let file = server.folder().join("ticks");
    let script = format!(
        "while read x; do echo $x; echo $x >> {}; done",
        file.display()
    );
    client.start(sh("quiet", &script).stdin()).await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    client.request_write("flood", "\n", "w").await;
    held_back(flood).await;
    for n in 0..20 {
        client
            .request_write("quiet", format!("tick{n}\n"), &format!("w{n}"))
            .await;
        patience::seen(&format!("tick {n}"), || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.ends_with(&format!("tick{n}\n")).then_some(())
        })
        .await;
    }
    client.read_on();
    client.sees("quiet", "tick19\n").await;
    client.end("quiet").await;
    client.terminate("flood").await;
}

#[tokio::test]
async fn other_connections_do_not_feel_it() {
    let server = outpost().start().await;
    let mut stuck = Vec::new();
    for _ in 0..5 {
        let client = server.client().await;
        client.only_count("flood");
        client
            .start(sh("flood", "read x; exec cat /dev/zero").stdin())
            .await;
        let flood = pid(&client, "flood").await;
        client.stop_reading();
        client.request_write("flood", "\n", "w").await;
        stuck.push((client, flood));
    }
    let client = server.client().await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    for n in 0..50 {
        client
            .write("cat", format!("echo{n}\n"), &format!("w{n}"))
            .await;
        client.sees("cat", &format!("echo{n}\n")).await;
    }
    for (_, flood) in &stuck {
        held_back(*flood).await;
    }
    client.end("cat").await;
    let rss = server.vitals().peak_rss_kib();
    assert!(rss < 5 * MEMORY_KIB, "{rss} KiB");
}

#[tokio::test]
async fn a_process_held_back_can_be_ended() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    let flood = pid(&client, "flood").await;
    client.stop_reading();
    held_back(flood).await;
    client
        .request(
            "process/terminate",
            serde_json::json!({"processId": "flood"}),
        )
        .await;
    server.mark().alive(1).await;
    client.read_on();
    assert_eq!(client.exited("flood").await.code(), 137);
}

#[tokio::test]
async fn while_nobody_is_attached_a_process_is_not_held_back() {
    let (server, client) = ready().await;
    let before = server.vitals().peak_rss_kib();
    let file = server.folder().join("done");
    let script = format!(
        "read x; head -c 64M /dev/zero; echo over > {}; exec sleep 1000",
        file.display()
    );
    client.only_count("p");
    client.start(sh("p", &script).stdin()).await;
    client.stop_reading();
    client.request_write("p", "\n", "w").await;
    held_back(pid_of_child(&server).await).await;
    assert!(!file.exists());
    client.cut().await;
    patience::seen("all of it to be written to nobody", || {
        file.exists().then_some(())
    })
    .await;
    bounded(&server, before);
}

/// The only child that the server has.
async fn pid_of_child(server: &Server) -> Vitals {
    let pid = patience::seen("the writer", || {
        let living = server.mark().living();
        let head = living.iter().find(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name == "head\n")
        });
        head.copied()
    })
    .await;
    Vitals::of(pid)
}
