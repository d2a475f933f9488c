//! `outpost ps`: what there is.

use outpost_testkit::{Transport, sh};
use serde_json::Value;

use super::home;
use crate::outpost;

#[tokio::test]
async fn without_a_server_there_is_nothing_and_none_is_started() {
    let home = home();
    let none = home.run(&["ps"]).await;
    assert_eq!(none.code, Some(0));
    assert_eq!(none.stdout, "");
    assert_eq!(
        none.stderr,
        "outpost: no server of this user is running; `outpost run --detach` starts one\n"
    );
    assert_eq!(home.output(&["ps", "--json"]).await, "[]\n");
    assert!(home.mark().living().is_empty());
    assert!(!home.folder().join("outpost").exists());
}

#[tokio::test]
async fn what_runs_and_what_has_ended_is_shown() {
    let home = home();
    let runs = home.detach("exec sleep 1000").await;
    let ended = home.detach("exit 7").await;
    home.run(&["logs", "-f", &ended]).await;
    let ps = home.output(&["ps"]).await;
    let lines: Vec<_> = ps.lines().collect();
    assert_eq!(lines.len(), 3, "{ps}");
    assert!(lines[0].starts_with("ID        STATE     STARTED"), "{ps}");
    assert!(lines[1].starts_with(&format!("{runs}  running   ")), "{ps}");
    assert!(lines[1].ends_with("sh -c 'exec sleep 1000'"), "{ps}");
    assert!(
        lines[2].starts_with(&format!("{ended}  exited 7  ")),
        "{ps}"
    );
    assert!(!ps.contains('\u{1b}'), "no colours in a pipe");
    home.stop().await;
}

#[tokio::test]
async fn programs_get_the_words_of_the_wire_and_no_keys() {
    let home = home();
    let id = home.detach("echo hi; exit 3").await;
    home.run(&["logs", "-f", &id]).await;
    let json = home.output(&["ps", "--json"]).await;
    let list: Value = serde_json::from_str(&json).unwrap();
    let entry = &list[0];
    assert_eq!(entry["processId"], id.as_str());
    assert_eq!(entry["state"], "closed");
    assert_eq!(entry["exitCode"], 3);
    assert_eq!(
        entry["argv"],
        serde_json::json!(["sh", "-c", "echo hi; exit 3"])
    );
    assert_eq!(entry["command"], "sh -c 'echo hi; exit 3'");
    assert_eq!(entry["label"], Value::Null, "that is for other clients");
    assert_eq!(entry["attached"], false);
    assert_eq!(entry["bytesOut"], 3);
    assert!(entry.get("sessionId").is_none(), "{json}");
    home.stop().await;
}

#[tokio::test]
async fn what_other_clients_run_is_shown_if_asked_for() {
    let server = outpost().on(Transport::Unix).start().await;
    let client = server.client().await;
    client.start(sh("theirs", "exec sleep 1000")).await;
    let url = format!("unix://{}", server.socket_path().display());
    let own = outpost().run(&["ps", "--on", &url]).await;
    assert_eq!((own.code, own.stdout.as_str()), (Some(0), ""), "{own:?}");
    let all = outpost().run(&["ps", "-a", "--on", &url]).await;
    assert!(
        all.stdout.contains("theirs  running, attached  "),
        "{all:?}"
    );
    client.end("theirs").await;
}

#[tokio::test]
async fn a_list_needs_a_unix_socket() {
    let server = outpost().start().await;
    let refused = outpost().run(&["ps", "--on", &server.urls()[0]]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("over a unix socket"), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let refused = outpost().run(&["ps", "--on", "unix:///nope/nope"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(
        refused
            .stderr
            .starts_with("outpost: cannot reach the server"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("unix:///nope/nope"), "{refused:?}");
}

/// Work that is forgotten may have left something running, which looking must not end.
#[tokio::test]
async fn looking_ends_nothing() {
    let args = ["--max-session-ttl", "unlimited", "--closed-retention", "0s"];
    let server = outpost().on(Transport::Unix).args(&args).start().await;
    let url = format!("unix://{}", server.socket_path().display());
    let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!";
    let pid = server.folder().join("pid");
    let script = format!("{script} > {}", pid.display());
    let started = outpost()
        .run(&["run", "--detach", "--on", &url, "--", "sh", "-c", &script])
        .await;
    assert_eq!(started.code, Some(0), "{started:?}");
    let watcher = server.client().await;
    let forgotten = async || {
        let list = watcher.call("session/list", serde_json::json!({})).await;
        let sessions = list["sessions"].as_array().unwrap().clone();
        let labelled = |entry: &&Value| entry["label"].is_string();
        let sessions: Vec<_> = sessions.iter().filter(labelled).cloned().collect();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0]["processes"] == serde_json::json!([])
    };
    while !forgotten().await {
        tokio::task::yield_now().await;
    }
    let listed = outpost().run(&["ps", "--on", &url]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(forgotten().await, "the session is there");
    let daemon = std::fs::read_to_string(&pid).unwrap();
    let line = std::fs::read(format!("/proc/{}/cmdline", daemon.trim_end())).unwrap();
    assert!(line.starts_with(b"sleep"), "it lives");
}
