//! `outpost attach`, on a real terminal.

use std::os::unix::fs::DirBuilderExt as _;

use outpost_testkit::{Client, Server, sh};
use serde_json::json;

use crate::{outpost, ready};

/// A shell on a terminal of 30 by 100, with a runtime directory of its own.
async fn shell(script: &str) -> (Server, Client) {
    let (server, client) = ready().await;
    let runtime = server.folder().join("runtime");
    let made = std::fs::DirBuilder::new().mode(0o700).create(&runtime);
    made.expect("a folder can be made");
    let binary = outpost();
    let binary = binary.binary().to_str().expect("it is text");
    let runtime = runtime.to_str().expect("it is text");
    let start = sh("p", &format!("{script}; $OUTPOST stop"))
        .tty()
        .env(&[("OUTPOST", binary), ("XDG_RUNTIME_DIR", runtime)])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    (server, client)
}

/// Answers every line until it is told to end.
const ANSWERS: &str = "echo begun; while read x; do echo got $x; [ $x = end ] && exit 5; done";

#[tokio::test]
async fn what_was_left_is_found_as_it_was_left() {
    let (_server, client) = shell(&format!(
        "before=$(stty -g); id=$($OUTPOST run -d -t -- sh -c '{ANSWERS}'); \
         $OUTPOST attach $id; echo code $?; \
         [ \"$(stty -g)\" = \"$before\" ] && echo restored; \
         $OUTPOST ps | grep -q running && echo still running; \
         $OUTPOST attach $id; echo code $?"
    ))
    .await;
    client.sees("p", "begun").await;
    client.write("p", "one\r", "1").await;
    client.sees("p", "got one").await;
    client.write("p", b"\x1d", "2").await;
    client.sees("p", "code 0").await;
    client.sees("p", "restored\r\nstill running\r\n").await;
    let again = |text: &str| {
        text.split("still running")
            .nth(1)
            .is_some_and(|t| t.contains("got one"))
    };
    client
        .story_until("p", "what was written before", |story| again(&story.text()))
        .await;
    client.write("p", "end\r", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 5\r\n"), "{text}");
}

#[tokio::test]
async fn the_size_and_ctrl_c_reach_what_was_attached_to() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -t -- sh -c 'trap \"stty size\" WINCH; trap \"exit 6\" INT; \
         echo ready; while :; do sleep 0.02; done'); $OUTPOST attach $id; echo code $?",
    )
    .await;
    client.sees("p", "30 100").await;
    let size = json!({"processId": "p", "size": {"rows": 41, "cols": 121}});
    client.call("process/resize", size).await;
    client.sees("p", "41 121").await;
    client.write("p", b"\x03", "1").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 6\r\n"), "{text}");
}

#[tokio::test]
async fn what_has_ended_is_shown_and_its_exit_code_is_ours() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -- sh -c 'echo all of it; exit 3'); $OUTPOST logs -f $id; \
         $OUTPOST attach $id; echo code $?; $OUTPOST attach nosuch; echo code $?",
    )
    .await;
    let text = client.closed("p").await.text();
    assert!(
        text.contains("all of it\r\nall of it\r\ncode 3\r\n"),
        "{text}"
    );
    assert!(text.contains("no process nosuch"), "{text}");
    assert!(text.contains("code 1\r\n"), "{text}");
}

#[tokio::test]
async fn a_second_terminal_takes_over_and_the_first_is_told() {
    let (server, first) = shell(&format!(
        "id=$($OUTPOST run -d -t -- sh -c '{ANSWERS}'); echo id $id.; \
         $OUTPOST attach $id; echo first $?; read x"
    ))
    .await;
    let text = first.sees("p", "begun").await.text();
    let id = text
        .split("id ")
        .nth(1)
        .and_then(|rest| rest.split('.').next());
    let id = id.expect("it was printed").to_owned();
    let runtime = server.folder().join("runtime");
    let binary = outpost();
    let second = sh("q", "$OUTPOST attach $ID; echo second $?").tty().env(&[
        ("OUTPOST", binary.binary().to_str().expect("it is text")),
        ("XDG_RUNTIME_DIR", runtime.to_str().expect("it is text")),
        ("ID", &id),
    ]);
    first.start(second).await;
    first.sees("q", "taking it over").await;
    let text = first.sees("p", "first").await.text();
    let said = format!("\noutpost: another terminal has taken over {id}\r\n");
    assert!(text.contains(&said), "{text}");
    first.write("q", "end\r", "1").await;
    first.sees("q", "second 5").await;
    first.write("p", "\r", "2").await;
    first.closed("p").await;
}

/// What is left of a shell's screen behind the last of these words.
fn behind<'a>(text: &'a str, words: &str) -> &'a str {
    text.rsplit(words).next().unwrap_or_default()
}

#[tokio::test]
async fn who_ends_us_or_hangs_up_does_not_end_the_work() {
    for signal in ["TERM", "HUP"] {
        let (_server, client) = shell(&format!(
            "export ID=$($OUTPOST run -d -t -- sh -c '{ANSWERS}'); \
             sh -c 'echo pid $$.; exec $OUTPOST attach $ID'; echo code $?; \
             $OUTPOST ps | grep -q running && echo still running"
        ))
        .await;
        let text = client.sees("p", "begun").await.text();
        let pid = behind(&text, "pid ").split('.').next().expect("it says so");
        let kill = format!("kill -{signal} {pid}");
        client.run(sh("killer", &kill)).await;
        let text = client.closed("p").await.text();
        assert!(text.contains("code 0\r\n"), "{signal}: {text}");
        assert!(text.contains("still running\r\n"), "{signal}: {text}");
    }
}

#[tokio::test]
async fn who_reads_no_further_does_not_end_the_work() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -- sh -c 'while :; do echo more; sleep 0.02; done'); \
         { $OUTPOST attach $id; echo code $? >&2; } </dev/null | head -n 1; \
         $OUTPOST ps | grep -q running && echo still running",
    )
    .await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 0\r\n"), "{text}");
    assert!(text.contains("still running\r\n"), "{text}");
}

#[tokio::test]
async fn the_end_of_our_input_leaves_the_work() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -- sh -c 'echo begun; exec sleep 1000'); $OUTPOST attach $id; \
         echo code $?; $OUTPOST ps | grep -q running && echo still running",
    )
    .await;
    client.sees("p", "begun").await;
    client.write("p", b"\x04", "1").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 0\r\nstill running\r\n"), "{text}");
}

#[tokio::test]
async fn work_without_a_terminal_is_left_by_the_key_and_gets_ctrl_c() {
    let (_server, client) = shell(
        "before=$(stty -g); \
         id=$($OUTPOST run -d -- sh -c 'trap \"exit 6\" INT; echo begun; while :; do sleep 0.02; done'); \
         $OUTPOST attach $id; echo left $?; [ \"$(stty -g)\" = \"$before\" ] && echo restored; \
         trap : INT; $OUTPOST attach $id; echo ended $?",
    )
    .await;
    client.sees("p", "begun").await;
    client.write("p", "nobody reads this", "1").await;
    client.write("p", b"\x1d", "2").await;
    client.sees("p", "left 0").await;
    client
        .story_until("p", "the second attach", |story| {
            let text = story.text();
            let again = text.split("restored\r\n").nth(1);
            again.is_some_and(|text| text.contains("begun"))
        })
        .await;
    client.write("p", b"\x03", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("ended 6\r\n"), "{text}");
}
