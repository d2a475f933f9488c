//! Tests `outpost ps`.

use outpost_testkit::{Transport, deadline, sh};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::new_user;
use crate::outpost;

#[tokio::test]
async fn missing_server_is_not_started_by_ps() {
    let user = new_user();
    let none = user.run(&["ps"]).await;
    assert_eq!(none.code, Some(0));
    assert_eq!(none.stdout, "");
    assert_eq!(
        none.stderr,
        "outpost: your server is not running; `outpost run --detach` starts one\n"
    );
    assert_eq!(user.output(&["ps", "--json"]).await, "[]\n");
    assert!(user.tag().living().is_empty());
    assert!(!user.dir().join("outpost").exists());
}

#[tokio::test]
async fn killed_server_is_reported_until_the_next_server_runs() {
    let user = new_user();
    // They end with the server.
    let detach = || user.command().env("OUTPOST_TREES", "subreaper");
    let started = detach()
        .run(&["run", "--detach", "--", "sleep", "1000"])
        .await;
    assert_eq!(started.code, Some(0), "{started:?}");
    let is_server = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"serve")
    };
    let server = user.tag().living().into_iter().find(is_server);
    let server = Pid::from_raw(server.expect("it runs")).expect("not zero");
    kill_process(server, Signal::KILL).expect("it is killed");
    user.tag().gone().await;
    for command in ["ps", "stop"] {
        let said = user.run(&[command]).await;
        assert_eq!(said.code, Some(0));
        assert!(
            said.stderr.contains("your server was killed"),
            "{command}: {said:?}"
        );
    }
    let next = detach().run(&["run", "--detach", "--", "true"]).await;
    assert_eq!(next.code, Some(0), "{next:?}");
    let ps = user.run(&["ps"]).await;
    assert!(!ps.stderr.contains("was killed"), "{ps:?}");
    user.stop().await;
    let ps = user.run(&["ps"]).await;
    assert!(!ps.stderr.contains("was killed"), "{ps:?}");
}

#[tokio::test]
async fn running_and_exited_processes_are_shown() {
    let user = new_user();
    let runs = user.detach("exec sleep 1000").await;
    let exited = user.detach("exit 7").await;
    user.run(&["logs", "-f", &exited]).await;
    let ps = user.output(&["ps"]).await;
    let lines: Vec<_> = ps.lines().collect();
    assert_eq!(lines.len(), 3, "{ps}");
    assert!(lines[0].starts_with("ID        STATE     STARTED"), "{ps}");
    assert!(lines[1].starts_with(&format!("{runs}  running   ")), "{ps}");
    assert!(lines[1].ends_with("sh -c 'exec sleep 1000'"), "{ps}");
    assert!(
        lines[2].starts_with(&format!("{exited}  exited 7  ")),
        "{ps}"
    );
    assert!(!ps.contains('\u{1b}'), "no colours in a pipe");
    user.stop().await;
}

#[tokio::test]
async fn json_uses_wire_names_and_no_session_ids() {
    let user = new_user();
    let id = user.detach("echo hi; exit 3").await;
    user.run(&["logs", "-f", &id]).await;
    let json = user.output(&["ps", "--json"]).await;
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
    assert_eq!(entry["label"], Value::Null, "only other clients set labels");
    assert_eq!(entry["attached"], false);
    assert_eq!(entry["bytesOut"], 3);
    assert!(entry.get("sessionId").is_none(), "{json}");
    user.stop().await;
}

#[tokio::test]
async fn other_clients_processes_are_shown_on_request() {
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
    client.terminate_and_wait("theirs").await;
}

#[tokio::test]
async fn list_needs_a_unix_socket() {
    let server = outpost().start().await;
    let rejected = outpost().run(&["ps", "--on", &server.urls()[0]]).await;
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(1), ""));
    assert!(
        rejected.stderr.contains("over a unix socket"),
        "{rejected:?}"
    );
}

#[tokio::test]
async fn missing_server_given_by_on_is_an_error() {
    let rejected = outpost().run(&["ps", "--on", "unix:///nope/nope"]).await;
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(255), ""));
    assert!(
        rejected
            .stderr
            .starts_with("outpost: cannot reach the server"),
        "{rejected:?}"
    );
    assert!(
        rejected.stderr.contains("unix:///nope/nope"),
        "{rejected:?}"
    );
}

/// An expired process may have left processes running, which listing must not end.
#[tokio::test]
async fn listing_ends_nothing() {
    let args = ["--max-session-ttl", "unlimited", "--closed-retention", "0s"];
    let server = outpost().on(Transport::Unix).args(&args).start().await;
    let url = format!("unix://{}", server.socket_path().display());
    let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!";
    let pid = server.dir().join("pid");
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
    assert!(forgotten().await, "the session is missing");
    let daemon = std::fs::read_to_string(&pid).unwrap();
    // Its shell may not have executed it yet.
    deadline::poll_until("the daemon", || {
        let line = std::fs::read(format!("/proc/{}/cmdline", daemon.trim_end())).unwrap();
        line.starts_with(b"sleep").then_some(())
    })
    .await;
}
