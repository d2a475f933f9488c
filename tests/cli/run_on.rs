//! `outpost run --on` a server.

use std::time::Duration;

use outpost_testkit::{CountedLines, Direction, Link, Mark, Transport, patience};
use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;

use super::{command, ended, outcome, send, text};
use crate::outpost;

#[tokio::test]
async fn every_way_to_a_server_is_the_same_to_the_command() {
    let tcp = outpost().start().await;
    let unix = outpost().on(Transport::Unix).start().await;
    let binary = outpost();
    let launched = format!(
        "stdio:'{}' serve --listen stdio://",
        binary.binary().display()
    );
    for on in [tcp.urls()[0].as_str(), &unix.urls()[0], &launched] {
        let script = "cat; echo err >&2; exit 7";
        let args = ["run", "--on", on, "--", "sh", "-c", script];
        let output = outcome(&args, b"typed").await;
        assert_eq!(text(&output.stdout), "typed", "{on}");
        assert!(text(&output.stderr).contains("err\n"), "{on}");
        assert_eq!(output.status.code(), Some(7), "{on}");
    }
}

#[tokio::test]
async fn the_environment_is_the_servers_with_a_persons_language() {
    let server = outpost()
        .env("SERVERS", "own")
        .env("A_TOKEN", "secret")
        .env("TERM", "servers")
        .start()
        .await;
    let script = "echo $SERVERS:$A_TOKEN:$LC_ALL:$TERM:$MINE";
    let args = ["run", "--on", &server.urls()[0], "--", "sh", "-c", script];
    let child = command(&args, server.mark())
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "mine")
        .env("MINE", "mine")
        .spawn()
        .expect("it starts");
    assert_eq!(text(&ended(child).await.stdout), "own::C.UTF-8:servers:\n");
}

#[tokio::test]
async fn the_command_notices_nothing_of_ten_cuts() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let total = 2_000_000;
    let script = format!("seq 1 {total}; exit 9");
    let args = ["run", "--on", link.url(), "--", "sh", "-c", &script];
    let mut child = command(&args, server.mark()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let mut lines = CountedLines::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut cuts = 0;
    loop {
        let read = patience::soon("more output", stdout.read(&mut buffer));
        match read.await.expect("it can be read") {
            0 => break,
            count => lines.take(&buffer[..count]),
        }
        if cuts < 10 && lines.count() >= total / 11 * (cuts + 1) {
            link.cut().await;
            cuts += 1;
        }
    }
    assert_eq!((lines.count(), cuts), (total, 10));
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(9));
    let said = text(&output.stderr);
    assert!(
        said.contains("outpost: connection lost, reconnecting…\n"),
        "{said}"
    );
    assert!(said.contains("outpost: connected again\n"), "{said}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_exit_code_255() {
    let args = ["run", "--on", "unix:///no/such/socket", "--", "true"];
    let output = outcome(&args, b"").await;
    assert_eq!(output.status.code(), Some(255));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("outpost: --on unix:///no/such/socket: "),
        "{said}"
    );
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let output = outcome(&["run", "--on", "nonsense", "--", "true"], b"").await;
    let said = text(&output.stderr);
    assert!(said.contains("ws://, wss://, unix:// or stdio:"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    let output = outcome(&["run", "--on", "ws://127.0.0.1:x", "--", "true"], b"").await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test]
async fn a_slow_connection_is_no_reason_to_give_up() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let script = "trap 'exit 6' INT; echo ready; while :; do sleep 0.02; done";
    let args = ["run", "--on", link.url(), "--", "sh", "-c", script];
    let mut child = command(&args, server.mark()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let mut ready = [0; 6];
    let read = patience::soon("its output", stdout.read_exact(&mut ready));
    read.await.expect("it is ready");
    link.stall(Direction::ToServer);
    for _ in 0..3 {
        send(&child, Signal::INT);
        // sleep: two that come at once are one; nothing tells that one was heard
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    link.open();
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[tokio::test]
async fn who_waits_for_a_connection_can_be_ended() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("ws://{}", listener.local_addr().expect("it has one"));
    for (args, signal, code) in [
        (&["run", "--on", &url, "--", "true"][..], Signal::INT, 130),
        (&["run", "--on", &url, "--", "true"], Signal::TERM, 143),
        (&["attach", "--on", &url, "s/p"], Signal::TERM, 143),
    ] {
        let mark = Mark::new();
        let child = command(args, &mark).spawn().expect("it starts");
        let held = patience::soon("somebody who knocks", listener.accept()).await;
        send(&child, signal);
        assert_eq!(ended(child).await.status.code(), Some(code), "{args:?}");
        drop(held);
    }
}

#[tokio::test]
async fn who_gives_a_lost_server_up_is_told_by_which_signal() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let server = outpost().start().await;
        let link = Link::to(server.address()).await;
        let script = "echo ready; exec sleep 1000";
        let args = ["run", "--on", link.url(), "--", "sh", "-c", script];
        let mut child = command(&args, server.mark()).spawn().expect("it starts");
        let mut stdout = child.stdout.take().expect("it was asked for");
        let mut ready = [0; 6];
        let read = patience::soon("its output", stdout.read_exact(&mut ready));
        read.await.expect("it is ready");
        let mut stderr = child.stderr.take().expect("it was asked for");
        link.cut().await;
        drop(link);
        let mut said = String::new();
        while !said.contains("reconnecting") {
            let mut piece = [0; 256];
            let read = patience::soon("words", stderr.read(&mut piece)).await;
            said.push_str(text(&piece[..read.expect("it can be read")]));
        }
        while child.try_wait().expect("it can be asked").is_none() {
            send(&child, signal);
            // sleep: two that come at once are one; nothing tells that one was heard
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(ended(child).await.status.code(), Some(code));
    }
}
