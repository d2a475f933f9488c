//! Tests `outpost attach` on a real terminal.

use std::os::unix::fs::DirBuilderExt as _;

use outpost_testkit::{Client, Server, sh};
use serde_json::json;

use crate::{outpost, ready};

/// Starts a shell on a 30x100 terminal with its own runtime directory.
async fn shell(script: &str) -> (Server, Client) {
    let (server, client) = ready().await;
    let runtime = server.dir().join("runtime");
    let made = std::fs::DirBuilder::new().mode(0o700).create(&runtime);
    made.expect("a directory");
    let binary = outpost();
    let binary = binary.binary().to_str().expect("UTF-8");
    let runtime = runtime.to_str().expect("UTF-8");
    let start = sh("p", &format!("{script}; $OUTPOST stop"))
        .tty()
        .env(&[("OUTPOST", binary), ("XDG_RUNTIME_DIR", runtime)])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    (server, client)
}

/// A script that replies to every line until it reads `end`.
const REPLIES: &str = "echo begun; while read x; do echo got $x; [ $x = end ] && exit 5; done";

#[tokio::test]
async fn attach_resumes_a_detached_process() {
    let (_server, client) = shell(&format!(
        "before=$(stty -g); id=$($OUTPOST run -d -t -- sh -c '{REPLIES}'); \
         $OUTPOST attach $id; echo code $?; \
         [ \"$(stty -g)\" = \"$before\" ] && echo restored; \
         $OUTPOST ps | grep -q running && echo still running; \
         $OUTPOST attach $id; echo code $?"
    ))
    .await;
    client.wait_output("p", "begun").await;
    client.write("p", "one\r", "1").await;
    client.wait_output("p", "got one").await;
    client.write("p", b"\x1d", "2").await;
    client.wait_output("p", "code 0").await;
    client
        .wait_output("p", "restored\r\nstill running\r\n")
        .await;
    let again = |text: &str| {
        text.split("still running")
            .nth(1)
            .is_some_and(|t| t.contains("got one"))
    };
    client
        .event_log_until("p", "what was written before", |log| again(&log.text()))
        .await;
    client.write("p", "end\r", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 5\r\n"), "{text}");
}

#[tokio::test]
async fn window_size_and_ctrl_c_reach_the_process() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -t -- sh -c 'trap \"stty size\" WINCH; trap \"exit 6\" INT; \
         echo ready; while :; do sleep 0.02; done'); $OUTPOST attach $id; echo code $?",
    )
    .await;
    client.wait_output("p", "30 100").await;
    let size = json!({"processId": "p", "size": {"rows": 41, "cols": 121}});
    client.call("process/resize", size).await;
    client.wait_output("p", "41 121").await;
    client.write("p", b"\x03", "1").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 6\r\n"), "{text}");
}

#[tokio::test]
async fn exited_process_is_shown_and_its_code_returned() {
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
async fn second_terminal_takes_over_and_the_first_is_notified() {
    let (server, first) = shell(&format!(
        "id=$($OUTPOST run -d -t -- sh -c '{REPLIES}'); echo id $id.; \
         $OUTPOST attach $id; echo first $?; read x"
    ))
    .await;
    let text = first.wait_output("p", "begun").await.text();
    let id = text
        .split("id ")
        .nth(1)
        .and_then(|rest| rest.split('.').next());
    let id = id.expect("it was printed").to_owned();
    let runtime = server.dir().join("runtime");
    let binary = outpost();
    let second = sh("q", "$OUTPOST attach $ID; echo second $?").tty().env(&[
        ("OUTPOST", binary.binary().to_str().expect("UTF-8")),
        ("XDG_RUNTIME_DIR", runtime.to_str().expect("UTF-8")),
        ("ID", &id),
    ]);
    first.start(second).await;
    first.wait_output("q", "taking over").await;
    let text = first.wait_output("p", "first").await.text();
    let printed = format!("\noutpost: another terminal has taken over {id}\r\n");
    assert!(text.contains(&printed), "{text}");
    first.write("q", "end\r", "1").await;
    first.wait_output("q", "second 5").await;
    first.write("p", "\r", "2").await;
    first.closed("p").await;
}

/// Returns the screen text after the last occurrence of `words`.
fn text_after<'a>(text: &'a str, message: &str) -> &'a str {
    text.rsplit(message).next().unwrap_or_default()
}

#[tokio::test]
async fn signal_or_hangup_does_not_end_the_process() {
    for signal in ["TERM", "HUP"] {
        let (_server, client) = shell(&format!(
            "export ID=$($OUTPOST run -d -t -- sh -c '{REPLIES}'); \
             sh -c 'echo pid $$.; exec $OUTPOST attach $ID'; echo code $?; \
             $OUTPOST ps | grep -q running && echo still running"
        ))
        .await;
        let text = client.wait_output("p", "begun").await.text();
        let pid = text_after(&text, "pid ")
            .split('.')
            .next()
            .expect("reported");
        let kill = format!("kill -{signal} {pid}");
        client.run(sh("killer", &kill)).await;
        let text = client.closed("p").await.text();
        assert!(text.contains("code 0\r\n"), "{signal}: {text}");
        assert!(text.contains("still running\r\n"), "{signal}: {text}");
    }
}

#[tokio::test]
async fn broken_pipe_does_not_end_the_process() {
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
async fn end_of_input_leaves_the_process_running() {
    let (_server, client) = shell(
        "id=$($OUTPOST run -d -- sh -c 'echo begun; exec sleep 1000'); $OUTPOST attach $id; \
         echo code $?; $OUTPOST ps | grep -q running && echo still running",
    )
    .await;
    client.wait_output("p", "begun").await;
    client.write("p", b"\x04", "1").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("code 0\r\nstill running\r\n"), "{text}");
}

#[tokio::test]
async fn detach_key_and_ctrl_c_work_without_a_pty() {
    let (_server, client) = shell(
        "before=$(stty -g); \
         id=$($OUTPOST run -d -- sh -c 'trap \"exit 6\" INT; echo begun; while :; do sleep 0.02; done'); \
         $OUTPOST attach $id; echo left $?; [ \"$(stty -g)\" = \"$before\" ] && echo restored; \
         trap : INT; $OUTPOST attach $id; echo ended $?",
    )
    .await;
    client.wait_output("p", "begun").await;
    client.write("p", "unread input", "1").await;
    client.write("p", b"\x1d", "2").await;
    client.wait_output("p", "left 0").await;
    client
        .event_log_until("p", "the second attach", |log| {
            let text = log.text();
            let again = text.split("restored\r\n").nth(1);
            again.is_some_and(|text| text.contains("begun"))
        })
        .await;
    client.write("p", b"\x03", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("ended 6\r\n"), "{text}");
}
