//! Tests `outpost run -t` on a real terminal: the program under test runs in a PTY process of a
//! server.

use outpost_testkit::{Client, FaultyLink, Server, Start, sh};
use serde_json::json;

use crate::{outpost, ready};

/// Starts a shell on a 30x100 terminal with the program under test as `$OUTPOST`.
async fn shell(script: &str) -> (Server, Client) {
    let (server, client) = ready().await;
    let binary = outpost();
    let binary = binary.binary().to_str().expect("UTF-8").to_owned();
    let start: Start = sh("p", script)
        .tty()
        .env(&[("OUTPOST", &binary), ("TERM", "xterm-test")])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    (server, client)
}

#[tokio::test]
async fn pty_has_and_follows_the_terminals_size() {
    let (_server, client) = shell(
        "$OUTPOST run -t -- sh -c 'stty size; echo $TERM; trap \"stty size; exit 4\" WINCH; \
         echo ready; while :; do sleep 0.02; done'; echo code $?",
    )
    .await;
    let log = client.wait_output("p", "ready").await;
    assert_eq!(log.text(), "30 100\r\nxterm-test\r\nready\r\n");
    let size = json!({"processId": "p", "size": {"rows": 41, "cols": 121}});
    client.call("process/resize", size).await;
    let log = client.closed("p").await;
    assert!(
        log.text().ends_with("41 121\r\ncode 4\r\n"),
        "{}",
        log.text()
    );
}

#[tokio::test]
async fn ctrl_c_reaches_the_command_with_and_without_a_pty() {
    for flags in ["-t", "", "-i"] {
        let (_server, client) = shell(&format!(
            "trap : INT; $OUTPOST run {flags} -- sh -c 'trap \"echo caught; exit 6\" INT; echo ready; \
             while :; do sleep 0.02; done'; echo code $?",
        ))
        .await;
        client.wait_output("p", "ready").await;
        client.write("p", b"\x03", "w").await;
        let text = client.wait_output("p", "code").await.text();
        assert!(text.contains("caught"), "{flags:?}: {text}");
        client.closed("p").await;
    }
}

#[tokio::test]
async fn keys_reach_the_command_unbuffered() {
    let (_server, client) = shell(
        "$OUTPOST run -t -- sh -c 'stty raw -echo; echo ready; dd bs=1 count=4 2>/dev/null | \
         od -An -tx1'; echo code $?",
    )
    .await;
    client.wait_output("p", "ready").await;
    client.write("p", b"a\x03\x1a\x1d", "w").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("61 03 1a 1d"), "{text}");
    assert!(text.ends_with("code 0\r\n"), "{text}");
}

/// Reports whether the terminal's settings were restored.
const COMPARE_SETTINGS: &str = "i=0; while [ \"$(stty -g)\" != \"$before\" ] && [ $i -lt 500 ]; do \
                        sleep 0.02; i=$((i+1)); done; \
                        [ \"$(stty -g)\" = \"$before\" ] && echo restored || echo changed";

#[tokio::test]
async fn terminal_is_restored_even_after_sigkill() {
    for end in ["true", "kill -TERM $PPID_OF_IT", "kill -KILL $PPID_OF_IT"] {
        let (server, client) = shell(&format!(
            "before=$(stty -g); \
             sh -c 'echo pid $$; exec $OUTPOST run -t -- sh -c \"echo inside; read x\"'; \
             {COMPARE_SETTINGS}",
        ))
        .await;
        let log = client.wait_output("p", "inside").await;
        let text = log.text();
        let pid = text
            .strip_prefix("pid ")
            .and_then(|rest| rest.split("\r\n").next());
        let pid = pid.expect("a version").to_owned();
        if end == "true" {
            client.write("p", "\r", "w").await;
        } else {
            let kill = end.replace("$PPID_OF_IT", &pid);
            client.run(sh("killer", &kill)).await;
        }
        let text = client.closed("p").await.text();
        assert!(text.contains("restored\r\n"), "{end}: {text}");
        drop(client);
        drop(server);
    }
}

#[tokio::test]
async fn typed_input_is_forwarded_with_interactive() {
    let (_server, client) = shell(
        "$OUTPOST run -i -- sh -c 'test -t 0 && echo terminal; read x; echo got $x'; \
         $OUTPOST run -- sh -c 'read x || echo nothing'",
    )
    .await;
    client.write("p", "hello\n", "w").await;
    let text = client.closed("p").await.text();
    assert!(text.ends_with("got hello\r\nnothing\r\n"), "{text}");
    assert!(!text.contains("terminal"), "{text}");
}

#[tokio::test]
async fn escape_key_ends_waiting_for_a_reconnect() {
    let there = outpost().start().await;
    let link = FaultyLink::to(there.address()).await;
    let script = format!(
        "$OUTPOST run -t --on {} -- sh -c 'stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | \
         od -An -tx1; exec cat'; echo code $?",
        link.url()
    );
    let (_server, client) = shell(&script).await;
    client.wait_output("p", "ready").await;
    // While connected, the escape key is passed to the command.
    client.write("p", b"\x1d", "1").await;
    client.wait_output("p", "1d").await;
    drop(link);
    client
        .wait_output("p", "reconnecting… (Ctrl-] gives up)")
        .await;
    client.write("p", b"typed ahead", "2").await;
    client.write("p", b"\x1d", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.ends_with("code 130\r\n"), "{text}");
}
