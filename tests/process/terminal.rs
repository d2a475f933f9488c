//! `tty: true`.

use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn it_is_a_terminal_of_24_by_80_with_one_stream() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; tty; echo err >&2; \
                      read x; echo got:$x";
        client.start(sh("p", script).tty()).await;
        client.sees("p", "err").await;
        client.write("p", "hey\n", "w").await;
        let story = client.closed("p").await;
        let lines: Vec<_> = story.text().split("\r\n").map(str::to_owned).collect();
        assert_eq!(lines[0], "24 80");
        assert!(lines[1].starts_with("/dev/pts/"), "{lines:?}");
        assert_eq!(lines[2..], ["err", "hey", "got:hey", ""]);
        assert_eq!(
            story.stream("pty"),
            story.output(),
            "nothing is called otherwise"
        );
    })
    .await;
}

#[tokio::test]
async fn it_is_the_controlling_terminal_of_the_child() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "echo hello > /dev/tty; read x < /dev/tty; echo $x").tty())
        .await;
    client.sees("p", "hello").await;
    client.write("p", "there\n", "w").await;
    let story = client.closed("p").await;
    assert_eq!(story.text(), "hello\r\nthere\r\nthere\r\n");
}

#[tokio::test]
async fn pipe_stdin_beside_tty_changes_nothing() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "test -t 0 && read x && echo $x").tty().stdin())
        .await;
    client.write("p", "x\n", "w").await;
    assert_eq!(client.closed("p").await.text(), "x\r\nx\r\n");
}

#[tokio::test]
async fn a_typed_interrupt_reaches_the_trap() {
    let (_server, client) = ready().await;
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    client.start(sh("p", script).tty()).await;
    client.sees("p", "ready").await;
    client.write("p", b"\x03", "w").await;
    let story = client.closed("p").await;
    assert!(story.text().contains("caught"), "{}", story.text());
    assert_eq!(story.code(), 9);
}

#[tokio::test]
async fn a_typed_end_of_file_ends_the_input() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).tty()).await;
    client.write("p", "line\n\x04", "w").await;
    let story = client.closed("p").await;
    assert_eq!(
        (story.text().as_str(), story.code()),
        ("line\r\nline\r\n", 0)
    );
}

#[tokio::test]
async fn the_size_at_the_start_can_be_chosen() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty size")
        .tty()
        .with("size", json!({"rows": 50, "cols": 132}));
    assert_eq!(client.run(start).await.text(), "50 132\r\n");
}

#[tokio::test]
async fn resize_changes_the_size_and_says_so() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
        client.start(sh("p", script).tty()).await;
        client.sees("p", "ready").await;
        for (rows, cols) in [(10, 20), (1, 1), (65535, 65535)] {
            let params = json!({"processId": "p", "size": {"rows": rows, "cols": cols}});
            assert_eq!(client.call("process/resize", params).await, json!({}));
            client.sees("p", &format!("{rows} {cols}\r\n")).await;
        }
        client.end("p").await;
    })
    .await;
}

#[tokio::test]
async fn a_terminal_that_is_gone_has_any_size() {
    let (_server, client) = ready().await;
    client.run(sh("p", "exit 0").tty()).await;
    for rows in [10, 20] {
        let params = json!({"processId": "p", "size": {"rows": rows, "cols": 20}});
        assert_eq!(client.call("process/resize", params).await, json!({}));
    }
}

#[tokio::test]
async fn resize_needs_a_terminal_and_something_to_see() {
    let (_server, client) = ready().await;
    client.start(sh("pipes", "read x").stdin()).await;
    client.start(sh("pty", "read x").tty()).await;
    let params = |id: &str, rows: u16, cols: u16| json!({"processId": id, "size": {"rows": rows, "cols": cols}});
    assert_eq!(
        client
            .fails("process/resize", params("pipes", 10, 20))
            .await
            .code,
        -32600
    );
    assert_eq!(
        client
            .fails("process/resize", params("nobody", 10, 20))
            .await
            .code,
        -32600
    );
    for (rows, cols) in [(0, 80), (24, 0), (0, 0)] {
        let error = client
            .fails("process/resize", params("pty", rows, cols))
            .await;
        assert_eq!(error.code, -32602, "{rows} {cols}");
    }
    client.end("pipes").await;
    client.end("pty").await;
}

#[tokio::test]
async fn a_grandchild_that_ignores_the_hangup_keeps_the_terminal_open() {
    let (server, client) = ready().await;
    let go = server.folder().join("go");
    let script = format!(
        "trap '' HUP; (while [ ! -e {} ]; do sleep 0.02; done; echo late) & echo early; exit 4",
        go.display()
    );
    client.start(sh("p", &script).tty()).await;
    assert_eq!(client.exited("p").await.code(), 4);
    client.run(Start::new("q", &["true"])).await;
    assert!(!client.story("p").is_closed());
    std::fs::write(&go, "").expect("a file");
    let story = client.closed("p").await;
    assert_eq!(story.text(), "early\r\nlate\r\n");
}

#[tokio::test]
async fn a_terminal_carries_a_flood() {
    let (_server, client) = ready().await;
    client.only_count("p");
    client
        .start(sh("p", "stty raw; head -c 4194304 /dev/zero").tty())
        .await;
    client.counts("p", 4 * 1024 * 1024).await;
    client
        .story_until("p", "the close", |story| story.is_closed())
        .await;
    assert_eq!(client.counted("p").bytes, 4 * 1024 * 1024);
    assert_eq!(client.story("p").code(), 0);
}
