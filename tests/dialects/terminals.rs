//! `tty`, `size`, and resizing.

use serde_json::json;

use super::face::everywhere;

#[tokio::test]
async fn a_terminal_implies_streaming_both_ways_and_is_stdout() {
    everywhere(async |face, _, client| {
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo err >&2; \
                      read x; echo got:$x";
        let run = face.begin(client, "p", script, json!({"tty": true})).await;
        face.sees(client, "p", "err").await;
        face.types(client, "p", "hey\n").await;
        let outcome = run.end(client).await;
        assert_eq!(
            (outcome.exit_code, &*outcome.stdout, &*outcome.stderr),
            (0, "", "")
        );
        let told = face.told(client, "p", "stdout");
        assert_eq!(told, "24 80\r\nerr\r\nhey\r\ngot:hey\r\n");
        assert_eq!(face.told(client, "p", "stderr"), "");
    })
    .await;
}

#[tokio::test]
async fn it_has_the_size_it_is_given_at_first_and_later() {
    everywhere(async |face, _, client| {
        let more = json!({"tty": true, "size": {"rows": 40, "cols": 120}});
        let script = "stty size; trap 'stty size' WINCH; echo ready; \
                      while :; do read x && exit 0; done";
        let run = face.begin(client, "p", script, more).await;
        face.sees(client, "p", "ready").await;
        assert!(face.told(client, "p", "stdout").starts_with("40 120\r\n"));
        let size = face.about("p", json!({"size": {"rows": 50, "cols": 132}}));
        assert_eq!(client.call(face.resize(), size).await, json!({}));
        face.types(client, "p", "\n").await;
        assert_eq!(run.end(client).await.exit_code, 0);
        assert!(face.told(client, "p", "stdout").contains("50 132\r\n"));
    })
    .await;
}

#[tokio::test]
async fn the_end_of_input_is_typed() {
    everywhere(async |face, _, client| {
        let run = face
            .begin(client, "p", "cat; exit 9", json!({"tty": true}))
            .await;
        let close = face.about("p", json!({"deltaBase64": "YQo=", "closeStdin": true}));
        assert_eq!(client.call(face.write(), close).await, json!({}));
        assert_eq!(run.end(client).await.exit_code, 9);
        assert_eq!(face.told(client, "p", "stdout"), "a\r\na\r\n");
    })
    .await;
}

#[tokio::test]
async fn pipes_have_no_size() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdin": true});
        let run = face.begin(client, "p", "read x", more).await;
        let size = json!({"size": {"rows": 5, "cols": 5}});
        let error = client
            .fails(face.resize(), face.about("p", size.clone()))
            .await;
        let expected = "failed to resize PTY: process is not attached to a PTY";
        assert_eq!(error.parts(), (-32600, expected));
        let error = client.fails(face.resize(), face.about("H", size)).await;
        assert_eq!(error.parts(), (-32600, &*face.unknown("H")));
        face.types(client, "p", "\n").await;
        run.end(client).await;
    })
    .await;
}
