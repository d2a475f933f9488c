//! When input is open, and how it ends.

use outpost_testkit::{Start, base64, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn stdin_is_at_its_end_unless_asked_for() {
    let (_server, client) = ready().await;
    let story = client.run(sh("p", "cat; echo end; exec sleep 0")).await;
    assert_eq!(story.text(), "end\n");
    client.start(sh("q", "echo ready; exec sleep 1000")).await;
    client.sees("q", "ready").await;
    assert_eq!(client.write("q", "ignored", "w").await, "stdinClosed");
    client.end("q").await;
}

#[tokio::test]
async fn close_stdin_ends_a_pipe_after_the_bytes() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["wc", "-c"]).stdin()).await;
    client.write("p", "12345", "w1").await;
    assert_eq!(client.write_last("p", "678").await, "accepted");
    let story = client.closed("p").await;
    assert_eq!((story.text().trim(), story.code()), ("8", 0));
}

#[tokio::test]
async fn close_stdin_needs_no_bytes() {
    let (_server, client) = ready().await;
    // Often, because a terminal that is let go of too early hangs up on a child that is about to
    // leave by itself.
    for n in 0..20 {
        for tty in [false, true] {
            let id = format!("p{n}-{tty}");
            client
                .start(Start::new(&id, &["cat"]).stdin().with("tty", tty))
                .await;
            assert_eq!(client.write_last(&id, "").await, "accepted");
            let story = client.closed(&id).await;
            assert_eq!((story.text().as_str(), story.code()), ("", 0), "{id}");
        }
    }
}

#[tokio::test]
async fn after_close_stdin_nothing_is_accepted() {
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
        client.sees(&id, "over").await;
        assert_eq!(client.write(&id, "more", "w").await, "stdinClosed");
        assert_eq!(
            client.call("process/write", last).await,
            accepted,
            "a retry of it is one"
        );
        client.end(&id).await;
    }
}

#[tokio::test]
async fn close_stdin_that_is_false_changes_nothing() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    for close in [json!(false), json!(null)] {
        let params = json!({"processId": "p", "chunk": base64("x"), "closeStdin": close});
        assert_eq!(
            client.call("process/write", params).await,
            json!({"status": "accepted"})
        );
    }
    client.sees("p", "xx").await;
    client.write_last("p", "").await;
    client.closed("p").await;
}

#[tokio::test]
async fn close_stdin_ends_a_terminal_in_the_middle_of_a_line() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty -echo; echo ready; cat; echo \"[$?]\"").tty();
    client.start(start).await;
    client.sees("p", "ready").await;
    client.write("p", "whole\nhalf ", "w").await;
    assert_eq!(client.write_last("p", "a line").await, "accepted");
    let story = client.closed("p").await;
    assert_eq!(story.text(), "ready\r\nwhole\r\nhalf a line[0]\r\n");
}

#[tokio::test]
async fn close_stdin_ends_a_terminal_at_the_start_of_a_line() {
    let (_server, client) = ready().await;
    // One end of input for cat, and none left over for whoever reads next.
    let script = "stty -echo; echo ready; cat; echo next; sleep 1000";
    client.start(sh("p", script).tty()).await;
    client.sees("p", "ready").await;
    assert_eq!(client.write_last("p", "whole\n").await, "accepted");
    let story = client.sees("p", "next").await;
    assert_eq!(story.text(), "ready\r\nwhole\r\nnext\r\n");
    client.end("p").await;
}

#[tokio::test]
async fn close_stdin_uses_the_end_of_file_character_that_is_set() {
    let (_server, client) = ready().await;
    let script = "stty -echo eof ^A; echo ready; cat; echo \"[$?]\"";
    client.start(sh("p", script).tty()).await;
    client.sees("p", "ready").await;
    client.write_last("p", "text\n").await;
    assert_eq!(client.closed("p").await.text(), "ready\r\ntext\r\n[0]\r\n");
}

#[tokio::test]
async fn a_child_that_closes_its_input_is_noticed() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "exec <&-; echo ready; exec sleep 1000").stdin())
        .await;
    client.sees("p", "ready").await;
    // The first may be taken in before the pipe says that nobody reads.
    client.write("p", "x", "w1").await;
    assert_eq!(client.write("p", "x", "w2").await, "stdinClosed");
    client.end("p").await;
}

#[tokio::test]
async fn after_the_close_nothing_is_accepted() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        client
            .run(Start::new(&id, &["true"]).stdin().with("tty", tty))
            .await;
        assert_eq!(client.write(&id, "x", "w").await, "stdinClosed", "{id}");
    }
}
