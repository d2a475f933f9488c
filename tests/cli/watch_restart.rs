//! Tests `outpost watch` when a server is restarted or lost.

use std::fs;

use outpost_testkit::{FaultyLink, Server, TestUser};
use rustix::process::Signal;

use super::{
    new_user,
    watch::{content, folder, path_text, watching},
};
use crate::outpost;

/// Starts a server on a socket that the next one can use again. Returns it with its URL.
async fn server_of(user: &TestUser) -> (Server, String) {
    let url = format!("unix://{}/own.sock", user.dir().display());
    (outpost().listen(&url).start().await, url)
}

#[tokio::test]
async fn restarted_server_is_watched_again() {
    let user = new_user();
    let folder = folder(&user);
    let other = folder.clone() + "/a";
    let (mut server, url) = server_of(&user).await;
    for signal in [Signal::TERM, Signal::KILL] {
        let mut running = watching(&user, &["--on", &url, &folder, &other]).await;
        server.signal(signal);
        server.wait().await;
        fs::write(format!("{folder}/meanwhile"), "").expect("a file");
        (server, _) = server_of(&user).await;
        running
            .wait_for_stderr("outpost: changes may have been missed\n")
            .await;
        let file = format!("{folder}/a/f");
        fs::write(&file, "").expect("a file");
        running.wait_for_stdout(&format!("{file}\n")).await;
        running.signal(Signal::INT);
        let output = running.wait().await;
        assert_eq!(output.code, Some(130));
        assert!(!output.stdout.contains("meanwhile"), "{}", output.stdout);
        let expected = format!(
            "outpost: the session on {url} has ended; opening a new one…\n\
             outpost: connected again, with a new session\n\
             outpost: changes may have been missed\n"
        );
        assert!(output.stderr.ends_with(&expected), "{}", output.stderr);
    }
}

#[tokio::test]
async fn command_runs_again_after_a_restart() {
    let user = new_user();
    let folder = folder(&user);
    let [log, go] = ["log", "go"].map(|name| path_text(&user.dir().join(name)));
    let (mut server, url) = server_of(&user).await;
    let script = format!("echo run >> {log}; [ -e {go} ] || exec sleep 60");
    let args = ["--on", &url, &folder, "--", "sh", "-c", &script];
    for signal in [Signal::TERM, Signal::KILL] {
        let mut running = watching(&user, &args).await;
        fs::write(format!("{folder}/f"), "").expect("a file");
        content(&log, "run\n").await;
        server.signal(signal);
        server.wait().await;
        fs::write(&go, "").expect("a file");
        (server, _) = server_of(&user).await;
        content(&log, "run\nrun\n").await;
        fs::write(format!("{folder}/g"), "").expect("a file");
        content(&log, "run\nrun\nrun\n").await;
        running.signal(Signal::INT);
        let output = running.wait().await;
        assert_eq!(output.code, Some(130));
        // The server may still report the end of the command, and may not have reported its start.
        let ends = [
            "the command exited with ",
            "the command was lost: ",
            "cannot start the command: ",
        ];
        let ends = ends.iter().filter(|end| output.stderr.contains(**end));
        assert_eq!(ends.count(), 1, "{}", output.stderr);
        fs::remove_file(&log).expect("a log");
        fs::remove_file(&go).expect("a file");
    }
}

#[tokio::test]
async fn launched_server_that_is_lost_exits_with_255() {
    let user = new_user();
    let folder = folder(&user);
    let binary = outpost().binary().display().to_string();
    // The server is the parent of its processes then.
    let launched = format!("stdio:{binary} serve --listen stdio:// --trees group");
    let args = [
        "--on",
        &launched,
        &folder,
        "--",
        "sh",
        "-c",
        "kill -9 $PPID",
    ];
    let mut running = watching(&user, &args).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    let output = running.wait().await;
    assert_eq!(output.code, Some(255), "{}", output.stderr);
    let text = format!("outpost: cannot watch {folder:?}: ");
    assert!(output.stderr.contains(&text), "{}", output.stderr);
}

#[tokio::test]
async fn unreachable_server_exits_with_255() {
    let user = new_user();
    let url = format!("unix://{}/none.sock", user.dir().display());
    let output = user.run(&["watch", "--on", &url, "/"]).await;
    assert_eq!(output.code, Some(255), "{}", output.stderr);
}

#[tokio::test]
async fn lost_connection_is_told_once() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let user = new_user();
    let folder = folder(&user);
    let args = [
        "--on",
        link.url(),
        &folder,
        "--",
        "sh",
        "-c",
        "echo ran; exec sleep 60",
    ];
    let mut running = watching(&user, &args).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    running.wait_for_stdout("ran\n").await;
    link.cut().await;
    running.wait_for_stderr("outpost: connected again\n").await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    assert_eq!(output.code, Some(130));
    let lost = "outpost: connection lost, reconnecting…\n";
    assert_eq!(output.stderr.matches(lost).count(), 1, "{}", output.stderr);
}
