//! Tests `process/signal`.

use outpost_testkit::{ProcStats, Start, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

/// Wire names of signals that can be caught, and their names in a shell.
const CATCHABLE: &[(&str, &str)] = &[
    ("interrupt", "INT"),
    ("terminate", "TERM"),
    ("hangup", "HUP"),
    ("quit", "QUIT"),
    ("user1", "USR1"),
    ("user2", "USR2"),
    ("windowChange", "WINCH"),
    ("continue", "CONT"),
];

#[tokio::test]
async fn each_name_sends_its_signal() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let traps: String = CATCHABLE
            .iter()
            .map(|(_, name)| format!("trap 'echo got {name}' {name}; "))
            .collect();
        let script = format!("{traps} echo ready; while :; do sleep 0.02; done");
        client.start(sh(&id, &script).with("tty", tty)).await;
        client.wait_output(&id, "ready").await;
        for (name, signal) in CATCHABLE {
            client.signal(&id, name).await;
            client.wait_output(&id, &format!("got {signal}")).await;
        }
        client.signal(&id, "kill").await;
        assert_eq!(client.closed(&id).await.code(), 137);
    }
}

#[tokio::test]
async fn interrupt_reaches_the_trap_over_each_transport() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let script = "trap 'printf signal:int; exit 7' INT; printf ready; \
                      while :; do sleep 0.02; done";
        client.start(sh("p", script)).await;
        client.wait_output("p", "ready").await;
        client.signal("p", "interrupt").await;
        let log = client.closed("p").await;
        assert_eq!((log.text().as_str(), log.code()), ("readysignal:int", 7));
    })
    .await;
}

#[tokio::test]
async fn stop_and_continue_work() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    let entry = client.listed("p").await.expect("an entry");
    let pid = i32::try_from(entry["pid"].as_i64().expect("a pid")).expect("a pid");
    let state = async |wanted: char| {
        outpost_testkit::deadline::poll_until(&format!("state {wanted}"), || {
            (ProcStats::of(pid).state() == Some(wanted)).then_some(())
        })
        .await;
    };
    state('S').await;
    client.signal("p", "stop").await;
    state('T').await;
    client.write("p", "hello\n", "w").await;
    assert_eq!(
        client.listed("p").await.expect("an entry")["state"],
        "running"
    );
    client.signal("p", "continue").await;
    client.wait_output("p", "hello\n").await;
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn signal_reaches_the_whole_group() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = r#"
            trap : USR1
            member() {
                trap "echo got $1; exit 0" USR1
                echo ready $1
                while :; do sleep 0.02; done
            }
            member one & member two &
            wait; wait; wait
        "#;
        client.start(sh(&id, script).with("tty", tty)).await;
        client.wait_output(&id, "ready one").await;
        client.wait_output(&id, "ready two").await;
        client.signal(&id, "user1").await;
        client.wait_output(&id, "got one").await;
        client.wait_output(&id, "got two").await;
        client.closed(&id).await;
    }
}

#[tokio::test]
async fn signal_to_a_missing_process_has_no_effect() {
    let (_server, client) = ready().await;
    client.signal("unknown", "interrupt").await;
    client.run(Start::new("p", &["true"])).await;
    client.signal("p", "kill").await;
    client.start(sh("q", "sleep 1000 & echo $!; exit 0")).await;
    client.exited("q").await;
    client.signal("q", "kill").await;
    // Signals go to the process and not to its leftover processes.
    client.run(Start::new("r", &["true"])).await;
    assert!(!client.event_log("q").is_closed());
    client.terminate_with("q", json!({"tree": true})).await;
    client.closed("q").await;
}

#[tokio::test]
async fn unknown_signal_name_is_32602() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x").stdin()).await;
    for name in [
        "",
        "SIGINT",
        "INT",
        "Interrupt",
        "int",
        "sigkill",
        "window_change",
        "9",
    ] {
        for id in ["p", "unknown"] {
            let params = json!({"processId": id, "signal": name});
            let error = client.call_fails("process/signal", params).await;
            assert_eq!(error.code, -32602, "{name:?} to {id}");
        }
    }
    client.write_last("p", "\n").await;
    assert_eq!(client.closed("p").await.code(), 0);
}
