//! Tests when stdin is open and how it is closed.

use outpost_testkit::{Start, base64, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn stdin_is_empty_by_default() {
    let (_server, client) = ready().await;
    let log = client.run(sh("p", "cat; echo end; exec sleep 0")).await;
    assert_eq!(log.text(), "end\n");
    client.start(sh("q", "echo ready; exec sleep 1000")).await;
    client.wait_output("q", "ready").await;
    assert_eq!(client.write("q", "ignored", "w").await, "stdinClosed");
    client.terminate_and_wait("q").await;
}

#[tokio::test]
async fn close_stdin_closes_the_pipe_after_the_bytes() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["wc", "-c"]).stdin()).await;
    client.write("p", "12345", "w1").await;
    assert_eq!(client.write_last("p", "678").await, "accepted");
    let log = client.closed("p").await;
    assert_eq!((log.text().trim(), log.code()), ("8", 0));
}

#[tokio::test]
async fn close_stdin_needs_no_bytes() {
    let (_server, client) = ready().await;
    // Repeated, because a terminal closed too early sends SIGHUP to a child that is about to exit
    // by itself.
    for n in 0..20 {
        for tty in [false, true] {
            let id = format!("p{n}-{tty}");
            client
                .start(Start::new(&id, &["cat"]).stdin().with("tty", tty))
                .await;
            assert_eq!(client.write_last(&id, "").await, "accepted");
            let log = client.closed(&id).await;
            assert_eq!((log.text().as_str(), log.code()), ("", 0), "{id}");
        }
    }
}

#[tokio::test]
async fn writes_after_close_stdin_are_rejected() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = "cat > /dev/null; echo over; exec sleep 1000";
        client.start(sh(&id, script).stdin().with("tty", tty)).await;
        let last = json!({
            "processId": id, "chunk": base64("last\n"), "writeId": "last", "closeStdin": true,
        });
        let accepted = json!({"status": "accepted"});
        assert_eq!(client.call("process/write", last.clone()).await, accepted);
        assert_eq!(client.write(&id, "more", "w").await, "stdinClosed");
        assert_eq!(client.write_last(&id, "more").await, "stdinClosed");
        client.wait_output(&id, "over").await;
        assert_eq!(client.write(&id, "more", "w").await, "stdinClosed");
        assert_eq!(
            client.call("process/write", last).await,
            accepted,
            "a retry is idempotent"
        );
        client.terminate_and_wait(&id).await;
    }
}

#[tokio::test]
async fn close_stdin_false_changes_nothing() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    for close in [json!(false), json!(null)] {
        let params = json!({"processId": "p", "chunk": base64("x"), "closeStdin": close});
        assert_eq!(
            client.call("process/write", params).await,
            json!({"status": "accepted"})
        );
    }
    client.wait_output("p", "xx").await;
    client.write_last("p", "").await;
    client.closed("p").await;
}

#[tokio::test]
async fn close_stdin_ends_a_terminal_in_the_middle_of_a_line() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty -echo; echo ready; cat; echo \"[$?]\"").tty();
    client.start(start).await;
    client.wait_output("p", "ready").await;
    client.write("p", "whole\nhalf ", "w").await;
    assert_eq!(client.write_last("p", "a line").await, "accepted");
    let log = client.closed("p").await;
    assert_eq!(log.text(), "ready\r\nwhole\r\nhalf a line[0]\r\n");
}

#[tokio::test]
async fn close_stdin_ends_a_terminal_at_the_start_of_a_line() {
    let (_server, client) = ready().await;
    // The EOF is for cat alone; the next reader gets none.
    let script = "stty -echo; echo ready; cat; echo next; sleep 1000";
    client.start(sh("p", script).tty()).await;
    client.wait_output("p", "ready").await;
    assert_eq!(client.write_last("p", "whole\n").await, "accepted");
    let log = client.wait_output("p", "next").await;
    assert_eq!(log.text(), "ready\r\nwhole\r\nnext\r\n");
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn close_stdin_uses_the_configured_eof_character() {
    let (_server, client) = ready().await;
    let script = "stty -echo eof ^A; echo ready; cat; echo \"[$?]\"";
    client.start(sh("p", script).tty()).await;
    client.wait_output("p", "ready").await;
    client.write_last("p", "text\n").await;
    assert_eq!(client.closed("p").await.text(), "ready\r\ntext\r\n[0]\r\n");
}

#[tokio::test]
async fn child_closing_its_input_is_noticed() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "exec <&-; echo ready; exec sleep 1000").stdin())
        .await;
    client.wait_output("p", "ready").await;
    // The first write may be accepted before the pipe reports that its read end is closed.
    client.write("p", "x", "w1").await;
    assert_eq!(client.write("p", "x", "w2").await, "stdinClosed");
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn writes_after_the_close_are_rejected() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        client
            .run(Start::new(&id, &["true"]).stdin().with("tty", tty))
            .await;
        assert_eq!(client.write(&id, "x", "w").await, "stdinClosed", "{id}");
    }
}
