//! Tests `outpost run --on`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outpost_testkit::{
    Direction, FaultyLink, SequenceCheck, Server, TestTag, Transport, deadline, sh,
};
use rustix::process::Signal;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdout};

use super::{command, finish, outcome, send, text};
use crate::outpost;

#[tokio::test]
async fn every_transport_behaves_the_same() {
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
async fn environment_is_the_servers_with_the_users_language() {
    let server = outpost()
        .env("SERVERS", "own")
        .env("A_TOKEN", "secret")
        .env("TERM", "servers")
        .start()
        .await;
    let script = "echo $SERVERS:$A_TOKEN:$LC_ALL:$TERM:$MINE";
    let args = ["run", "--on", &server.urls()[0], "--", "sh", "-c", script];
    let child = command(&args, server.tag())
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "mine")
        .env("MINE", "mine")
        .spawn()
        .expect("spawn");
    assert_eq!(text(&finish(child).await.stdout), "own::C.UTF-8:servers:\n");
}

#[tokio::test]
async fn command_survives_ten_cuts() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let total = 2_000_000;
    let script = format!("seq 1 {total}; exit 9");
    let args = ["run", "--on", link.url(), "--", "sh", "-c", &script];
    let mut child = command(&args, server.tag()).spawn().expect("spawn");
    let mut stdout = child.stdout.take().expect("piped");
    let mut lines = SequenceCheck::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut cuts = 0;
    loop {
        let read = deadline::expect_soon("more output", stdout.read(&mut buffer));
        match read.await.expect("readable") {
            0 => break,
            count => lines.take(&buffer[..count]),
        }
        if cuts < 10 && lines.count() >= total / 11 * (cuts + 1) {
            link.cut().await;
            cuts += 1;
        }
    }
    assert_eq!((lines.count(), cuts), (total, 10));
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(9));
    let printed = text(&output.stderr);
    assert!(
        printed.contains("outpost: connection lost, reconnecting…\n"),
        "{printed}"
    );
    assert!(printed.contains("outpost: connected again\n"), "{printed}");
}

#[tokio::test]
async fn unreachable_server_exits_with_255() {
    let args = ["run", "--on", "unix:///no/such/socket", "--", "true"];
    let output = outcome(&args, b"").await;
    assert_eq!(output.status.code(), Some(255));
    let printed = text(&output.stderr);
    assert!(
        printed.starts_with("outpost: --on unix:///no/such/socket: "),
        "{printed}"
    );
    assert!(printed.contains("No such file or directory"), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");

    let output = outcome(&["run", "--on", "non:sense", "--", "true"], b"").await;
    let printed = text(&output.stderr);
    assert!(
        printed.contains("ws://, wss://, unix:///, ssh:// or stdio:"),
        "{printed}"
    );
    assert_eq!(output.status.code(), Some(2));
    let output = outcome(&["run", "--on", "ws://127.0.0.1:x", "--", "true"], b"").await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[tokio::test]
async fn slow_connection_is_kept() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let script = "trap 'exit 6' INT; echo ready; while :; do sleep 0.02; done";
    let args = ["run", "--on", link.url(), "--", "sh", "-c", script];
    let mut child = command(&args, server.tag()).spawn().expect("spawn");
    let mut stdout = child.stdout.take().expect("piped");
    let mut ready = [0; 6];
    let read = deadline::expect_soon("its output", stdout.read_exact(&mut ready));
    read.await.expect("ready");
    link.stall(Direction::ToServer);
    for _ in 0..3 {
        send(&child, Signal::INT);
        // sleep: two pending signals merge into one, and nothing reports that one was handled
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    link.open();
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[tokio::test]
async fn signal_ends_waiting_for_a_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("ws://{}", listener.local_addr().expect("it has one"));
    for (args, signal, code) in [
        (&["run", "--on", &url, "--", "true"][..], Signal::INT, 130),
        (&["run", "--on", &url, "--", "true"], Signal::TERM, 143),
        (&["attach", "--on", &url, "s/p"], Signal::TERM, 143),
    ] {
        let tag = TestTag::new();
        let child = command(args, &tag).spawn().expect("spawn");
        let held = deadline::expect_soon("a connection", listener.accept()).await;
        send(&child, signal);
        assert_eq!(finish(child).await.status.code(), Some(code), "{args:?}");
        drop(held);
    }
}

#[tokio::test]
async fn exit_code_names_the_signal_that_ended_a_reconnect() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let server = outpost().start().await;
        let link = FaultyLink::to(server.address()).await;
        let script = "echo ready; exec sleep 1000";
        let args = ["run", "--on", link.url(), "--", "sh", "-c", script];
        let mut child = command(&args, server.tag()).spawn().expect("spawn");
        let mut stdout = child.stdout.take().expect("piped");
        let mut ready = [0; 6];
        let read = deadline::expect_soon("its output", stdout.read_exact(&mut ready));
        read.await.expect("ready");
        let mut stderr = child.stderr.take().expect("piped");
        link.cut().await;
        drop(link);
        let mut printed = String::new();
        while !printed.contains("reconnecting") {
            let mut piece = [0; 256];
            let read = deadline::expect_soon("text", stderr.read(&mut piece)).await;
            printed.push_str(text(&piece[..read.expect("readable")]));
        }
        while child.try_wait().expect("try_wait").is_none() {
            send(&child, signal);
            // sleep: two pending signals merge into one, and nothing reports that one was handled
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(finish(child).await.status.code(), Some(code));
    }
}

/// Starts a command on a server that waits for the file `go`. Returns once it runs.
async fn waiting(url: &str, go: &Path, tag: &TestTag) -> (Child, BufReader<ChildStdout>) {
    let go = go.display();
    let script =
        format!("echo ready; while [ ! -e {go} ]; do sleep 0.02; done; echo done; exec sleep 1000");
    let args = ["run", "--on", url, "--", "sh", "-c", &script];
    // A process group of its own, whose parent could continue it as a shell does.
    let child = command(&args, tag).process_group(0).spawn();
    ready(child.expect("spawn")).await
}

async fn ready(mut child: Child) -> (Child, BufReader<ChildStdout>) {
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    assert_eq!(line(&mut stdout).await, "ready\n");
    (child, stdout)
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> String {
    let mut line = String::new();
    let read = stream.read_line(&mut line);
    deadline::expect_soon("a line", read).await.expect("UTF-8");
    line
}

/// Waits until a line is in the server's log so many times.
async fn logged(server: &Server, text: &str, times: usize) {
    deadline::poll_until(text, || {
        let count = server.stderr().matches(text).count();
        (count >= times).then_some(())
    })
    .await;
}

#[tokio::test]
async fn stopped_program_keeps_its_command() {
    let args = ["--session-ttl", "200ms", "--log-level", "debug"];
    let server = outpost().args(&args).start().await;
    let link = FaultyLink::to(server.address()).await;
    let dir = tempfile::tempdir().unwrap();
    let (go, tag) = (dir.path().join("go"), TestTag::new());
    let (mut child, mut stdout) = waiting(link.url(), &go, &tag).await;
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    send(&child, Signal::TSTP);
    let message = "outpost: stopped; the server keeps the command for 24 h\n";
    assert_eq!(line(&mut stderr).await, message);
    let pid = child.id().expect("it runs");
    deadline::poll_until("the stop", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.starts_with(" T").then_some(())
    })
    .await;
    // The server does so after a minute of silence.
    link.cut().await;
    let other = server.client().await;
    other.start(sh("p", "exec sleep 1000")).await;
    other.cut().await;
    logged(&server, "session expired", 1).await;
    send(&child, Signal::CONT);
    fs::write(&go, "").unwrap();
    assert_eq!(line(&mut stdout).await, "done\n");
    // The lease is short again.
    logged(&server, "session lease changed", 2).await;
    child.kill().await.expect("it runs");
    server.tag().alive(1).await;
    tag.gone().await;
}

#[tokio::test]
async fn program_is_not_stopped_if_the_server_would_end_the_command() {
    let server = outpost().args(&["--max-session-ttl", "1h"]).start().await;
    let dir = tempfile::tempdir().unwrap();
    let (go, tag) = (dir.path().join("go"), TestTag::new());
    let (mut child, mut stdout) = waiting(&server.urls()[0], &go, &tag).await;
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    send(&child, Signal::TSTP);
    let message = line(&mut stderr).await;
    let expected = "outpost: not stopped, because the server would end the command: ";
    assert!(message.starts_with(expected), "{message}");
    fs::write(&go, "").unwrap();
    assert_eq!(line(&mut stdout).await, "done\n");
    send(&child, Signal::TERM);
    assert_eq!(finish(child).await.status.code(), Some(143));
    tag.gone().await;
}

/// As with `ssh -t host outpost run …`: a stopped program could not be continued.
#[tokio::test]
async fn program_without_a_shell_is_not_stopped() {
    let args = ["--log-level", "debug"];
    let server = outpost().args(&args).start().await;
    let tag = TestTag::new();
    let (url, binary) = (&server.urls()[0], outpost());
    let script = "echo ready; read x; echo $x; exec sleep 1000";
    for (trap, is_ignored) in [("-", false), ("''", true)] {
        let shell = format!("trap {trap} TSTP; exec setsid \"$0\" \"$@\"");
        let child = tokio::process::Command::new("sh")
            .args(["-c", &shell])
            .arg(binary.binary())
            .args(["run", "--on", url, "--", "sh", "-c", script])
            .env(TestTag::VARIABLE, tag.as_str())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let (mut child, mut stdout) = ready(child.expect("spawn")).await;
        send(&child, Signal::TSTP);
        if !is_ignored {
            let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
            assert!(line(&mut stderr).await.starts_with("outpost: stopped; "));
            assert_eq!(line(&mut stderr).await, "outpost: continued\n");
            logged(&server, "session lease changed", 2).await;
        }
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(b"typed\n").await.expect("written");
        assert_eq!(line(&mut stdout).await, "typed\n");
        send(&child, Signal::TERM);
        let output = finish(child).await;
        assert_eq!(output.status.code(), Some(143));
        assert_eq!(text(&output.stderr), "");
        tag.gone().await;
    }
    assert_eq!(server.stderr().matches("session lease changed").count(), 2);
}
