//! Tests `tty`, `size` and resizing.

use serde_json::json;

use super::dialect::with_every_dialect;

#[tokio::test]
async fn tty_implies_streaming_and_stdout() {
    with_every_dialect(async |dialect, _, client| {
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo err >&2; \
                      read x; echo got:$x";
        let run = dialect
            .begin(client, "p", script, json!({"tty": true}))
            .await;
        dialect.wait_output(client, "p", "err").await;
        dialect.write_text(client, "p", "hey\n").await;
        let outcome = run.end(client).await;
        assert_eq!(
            (outcome.exit_code, &*outcome.stdout, &*outcome.stderr),
            (0, "", "")
        );
        let received = dialect.received_output(client, "p", "stdout");
        assert_eq!(received, "24 80\r\nerr\r\nhey\r\ngot:hey\r\n");
        assert_eq!(dialect.received_output(client, "p", "stderr"), "");
    })
    .await;
}

#[tokio::test]
async fn size_is_set_at_start_and_by_resize() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"tty": true, "size": {"rows": 40, "cols": 120}});
        let script = "stty size; trap 'stty size' WINCH; echo ready; \
                      while :; do read x && exit 0; done";
        let run = dialect.begin(client, "p", script, more).await;
        dialect.wait_output(client, "p", "ready").await;
        assert!(
            dialect
                .received_output(client, "p", "stdout")
                .starts_with("40 120\r\n")
        );
        let size = dialect.params_for("p", json!({"size": {"rows": 50, "cols": 132}}));
        assert_eq!(client.call(dialect.resize(), size).await, json!({}));
        dialect.write_text(client, "p", "\n").await;
        assert_eq!(run.end(client).await.exit_code, 0);
        assert!(
            dialect
                .received_output(client, "p", "stdout")
                .contains("50 132\r\n")
        );
    })
    .await;
}

#[tokio::test]
async fn end_of_input_types_eof() {
    with_every_dialect(async |dialect, _, client| {
        let run = dialect
            .begin(client, "p", "cat; exit 9", json!({"tty": true}))
            .await;
        let close = dialect.params_for("p", json!({"deltaBase64": "YQo=", "closeStdin": true}));
        assert_eq!(client.call(dialect.write(), close).await, json!({}));
        assert_eq!(run.end(client).await.exit_code, 9);
        assert_eq!(dialect.received_output(client, "p", "stdout"), "a\r\na\r\n");
    })
    .await;
}

#[tokio::test]
async fn pipes_have_no_size() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdin": true});
        let run = dialect.begin(client, "p", "read x", more).await;
        let size = json!({"size": {"rows": 5, "cols": 5}});
        let error = client
            .call_fails(dialect.resize(), dialect.params_for("p", size.clone()))
            .await;
        let expected = "failed to resize PTY: process is not attached to a PTY";
        assert_eq!(error.parts(), (-32600, expected));
        let error = client
            .call_fails(dialect.resize(), dialect.params_for("H", size))
            .await;
        assert_eq!(error.parts(), (-32600, &*dialect.unknown("H")));
        dialect.write_text(client, "p", "\n").await;
        run.end(client).await;
    })
    .await;
}
