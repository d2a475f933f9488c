//! `outpost run -t` on a real terminal, which a server gives us: what is tested runs in a process
//! of that server.

use outpost_testkit::{Client, Link, Server, Start, sh};
use serde_json::json;

use crate::{outpost, ready};

/// A shell on a terminal of 30 by 100 that knows the program under test as `$OUTPOST`.
async fn shell(script: &str) -> (Server, Client) {
    let (server, client) = ready().await;
    let binary = outpost();
    let binary = binary.binary().to_str().expect("it is text").to_owned();
    let start: Start = sh("p", script)
        .tty()
        .env(&[("OUTPOST", &binary), ("TERM", "xterm-test")])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    (server, client)
}

#[tokio::test]
async fn the_command_has_a_terminal_of_the_size_of_ours_which_follows_it() {
    let (_server, client) = shell(
        "$OUTPOST run -t -- sh -c 'stty size; echo $TERM; trap \"stty size; exit 4\" WINCH; \
         echo ready; while :; do sleep 0.02; done'; echo code $?",
    )
    .await;
    let story = client.sees("p", "ready").await;
    assert_eq!(story.text(), "30 100\r\nxterm-test\r\nready\r\n");
    let size = json!({"processId": "p", "size": {"rows": 41, "cols": 121}});
    client.call("process/resize", size).await;
    let story = client.closed("p").await;
    assert!(
        story.text().ends_with("41 121\r\ncode 4\r\n"),
        "{}",
        story.text()
    );
}

#[tokio::test]
async fn ctrl_c_reaches_the_command_with_and_without_a_terminal_of_its_own() {
    for flags in ["-t", "", "-i"] {
        let (_server, client) = shell(&format!(
            "trap : INT; $OUTPOST run {flags} -- sh -c 'trap \"echo caught; exit 6\" INT; echo ready; \
             while :; do sleep 0.02; done'; echo code $?",
        ))
        .await;
        client.sees("p", "ready").await;
        client.write("p", b"\x03", "w").await;
        let text = client.sees("p", "code").await.text();
        assert!(text.contains("caught"), "{flags:?}: {text}");
        client.closed("p").await;
    }
}

#[tokio::test]
async fn keys_go_to_the_command_as_they_are_typed() {
    let (_server, client) = shell(
        "$OUTPOST run -t -- sh -c 'stty raw -echo; echo ready; dd bs=1 count=4 2>/dev/null | \
         od -An -tx1'; echo code $?",
    )
    .await;
    client.sees("p", "ready").await;
    client.write("p", b"a\x03\x1a\x1d", "w").await;
    let text = client.closed("p").await.text();
    assert!(text.contains("61 03 1a 1d"), "{text}");
    assert!(text.ends_with("code 0\r\n"), "{text}");
}

/// Says whether the terminal is as it was, after something has happened to the program.
const COMPARED: &str = "i=0; while [ \"$(stty -g)\" != \"$before\" ] && [ $i -lt 500 ]; do \
                        sleep 0.02; i=$((i+1)); done; \
                        [ \"$(stty -g)\" = \"$before\" ] && echo restored || echo changed";

#[tokio::test]
async fn the_terminal_is_put_back_at_the_end_and_even_after_a_kill() {
    for end in ["true", "kill -TERM $PPID_OF_IT", "kill -KILL $PPID_OF_IT"] {
        let (server, client) = shell(&format!(
            "before=$(stty -g); \
             sh -c 'echo pid $$; exec $OUTPOST run -t -- sh -c \"echo inside; read x\"'; \
             {COMPARED}",
        ))
        .await;
        let story = client.sees("p", "inside").await;
        let text = story.text();
        let pid = text
            .strip_prefix("pid ")
            .and_then(|rest| rest.split("\r\n").next());
        let pid = pid.expect("it says which it is").to_owned();
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
async fn without_a_terminal_of_its_own_the_command_gets_what_is_typed_if_asked_to() {
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
async fn there_is_a_way_out_while_the_connection_is_lost() {
    let there = outpost().start().await;
    let link = Link::to(there.address()).await;
    let script = format!(
        "$OUTPOST run -t --on {} -- sh -c 'stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | \
         od -An -tx1; exec cat'; echo code $?",
        link.url()
    );
    let (_server, client) = shell(&script).await;
    client.sees("p", "ready").await;
    // While there is a connection, the key is the command's.
    client.write("p", b"\x1d", "1").await;
    client.sees("p", "1d").await;
    drop(link);
    client.sees("p", "reconnecting… (Ctrl-] gives up)").await;
    client.write("p", b"typed ahead", "2").await;
    client.write("p", b"\x1d", "3").await;
    let text = client.closed("p").await.text();
    assert!(text.ends_with("code 130\r\n"), "{text}");
}
