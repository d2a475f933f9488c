//! Tests `tty: true`.

use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn default_terminal_is_24_by_80_with_one_stream() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; tty; echo err >&2; \
                      read x; echo got:$x";
        client.start(sh("p", script).tty()).await;
        client.wait_output("p", "err").await;
        client.write("p", "hey\n", "w").await;
        let log = client.closed("p").await;
        let lines: Vec<_> = log.text().split("\r\n").map(str::to_owned).collect();
        assert_eq!(lines[0], "24 80");
        assert!(lines[1].starts_with("/dev/pts/"), "{lines:?}");
        assert_eq!(lines[2..], ["err", "hey", "got:hey", ""]);
        assert_eq!(
            log.stream("pty"),
            log.output(),
            "all output is on the pty stream"
        );
    })
    .await;
}

#[tokio::test]
async fn pty_is_the_controlling_terminal() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "echo hello > /dev/tty; read x < /dev/tty; echo $x").tty())
        .await;
    client.wait_output("p", "hello").await;
    client.write("p", "there\n", "w").await;
    let log = client.closed("p").await;
    assert_eq!(log.text(), "hello\r\nthere\r\nthere\r\n");
}

#[tokio::test]
async fn pipe_stdin_with_tty_changes_nothing() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "test -t 0 && read x && echo $x").tty().stdin())
        .await;
    client.write("p", "x\n", "w").await;
    assert_eq!(client.closed("p").await.text(), "x\r\nx\r\n");
}

#[tokio::test]
async fn typed_interrupt_reaches_the_trap() {
    let (_server, client) = ready().await;
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    client.start(sh("p", script).tty()).await;
    client.wait_output("p", "ready").await;
    client.write("p", b"\x03", "w").await;
    let log = client.closed("p").await;
    assert!(log.text().contains("caught"), "{}", log.text());
    assert_eq!(log.code(), 9);
}

#[tokio::test]
async fn typed_eof_ends_the_input() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).tty()).await;
    client.write("p", "line\n\x04", "w").await;
    let log = client.closed("p").await;
    assert_eq!((log.text().as_str(), log.code()), ("line\r\nline\r\n", 0));
}

#[tokio::test]
async fn initial_size_can_be_set() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty size")
        .tty()
        .with("size", json!({"rows": 50, "cols": 132}));
    assert_eq!(client.run(start).await.text(), "50 132\r\n");
}

#[tokio::test]
async fn resize_changes_the_size_and_sends_sigwinch() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
        client.start(sh("p", script).tty()).await;
        client.wait_output("p", "ready").await;
        for (rows, cols) in [(10, 20), (1, 1), (65535, 65535)] {
            let params = json!({"processId": "p", "size": {"rows": rows, "cols": cols}});
            assert_eq!(client.call("process/resize", params).await, json!({}));
            client.wait_output("p", &format!("{rows} {cols}\r\n")).await;
        }
        client.terminate_and_wait("p").await;
    })
    .await;
}

#[tokio::test]
async fn resize_of_a_closed_terminal_succeeds() {
    let (_server, client) = ready().await;
    client.run(sh("p", "exit 0").tty()).await;
    for rows in [10, 20] {
        let params = json!({"processId": "p", "size": {"rows": rows, "cols": 20}});
        assert_eq!(client.call("process/resize", params).await, json!({}));
    }
}

#[tokio::test]
async fn resize_needs_a_terminal_and_nonzero_values() {
    let (_server, client) = ready().await;
    client.start(sh("pipes", "read x").stdin()).await;
    client.start(sh("pty", "read x").tty()).await;
    let params = |id: &str, rows: u16, cols: u16| json!({"processId": id, "size": {"rows": rows, "cols": cols}});
    assert_eq!(
        client
            .call_fails("process/resize", params("pipes", 10, 20))
            .await
            .code,
        -32600
    );
    assert_eq!(
        client
            .call_fails("process/resize", params("unknown", 10, 20))
            .await
            .code,
        -32600
    );
    for (rows, cols) in [(0, 80), (24, 0), (0, 0)] {
        let error = client
            .call_fails("process/resize", params("pty", rows, cols))
            .await;
        assert_eq!(error.code, -32602, "{rows} {cols}");
    }
    client.terminate_and_wait("pipes").await;
    client.terminate_and_wait("pty").await;
}

#[tokio::test]
async fn grandchild_ignoring_hangup_keeps_the_terminal_open() {
    let (server, client) = ready().await;
    let go = server.dir().join("go");
    let script = format!(
        "trap '' HUP; (while [ ! -e {} ]; do sleep 0.02; done; echo late) & echo early; exit 4",
        go.display()
    );
    client.start(sh("p", &script).tty()).await;
    assert_eq!(client.exited("p").await.code(), 4);
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.event_log("p").is_closed());
    std::fs::write(&go, "").expect("a file");
    let log = client.closed("p").await;
    assert_eq!(log.text(), "early\r\nlate\r\n");
}

#[tokio::test]
async fn terminal_carries_a_flood() {
    let (_server, client) = ready().await;
    client.only_count("p");
    client
        .start(sh("p", "stty raw; head -c 4194304 /dev/zero").tty())
        .await;
    client.wait_count("p", 4 * 1024 * 1024).await;
    client
        .event_log_until("p", "the close", |log| log.is_closed())
        .await;
    assert_eq!(client.counted("p").bytes, 4 * 1024 * 1024);
    assert_eq!(client.event_log("p").code(), 0);
}
