//! Tests `outpost watch`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use outpost_testkit::{FaultyLink, RunningCommand, TestUser, deadline};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::new_user;
use crate::outpost;

/// Starts `outpost watch`, and waits until it watches.
pub(super) async fn watching(user: &TestUser, args: &[&str]) -> RunningCommand {
    let args = [&["watch"], args].concat();
    let running = user.spawn(&args);
    running.wait_for_stderr("outpost: watching ").await;
    running
}

pub(super) fn path_text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// A directory to watch.
pub(super) fn folder(user: &TestUser) -> String {
    let folder = user.dir().join("watched");
    fs::create_dir_all(folder.join("a")).expect("a directory");
    path_text(&folder)
}

/// Waits until a file has this content.
pub(super) async fn content(path: &str, expected: &str) {
    deadline::poll_until(&format!("{expected:?} in {path}"), || {
        let content = fs::read_to_string(path).unwrap_or_default();
        (content == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn changed_paths_are_printed_until_a_signal() {
    let user = new_user();
    let folder = folder(&user);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = watching(&user, &[&folder]).await;
        fs::write(format!("{folder}/a/f"), "").expect("a file");
        running.wait_for_stdout(&format!("{folder}/a/f\n")).await;
        fs::rename(format!("{folder}/a/f"), format!("{folder}/g")).expect("a rename");
        let renamed = format!("{folder}/a/f\n{folder}/g\n");
        running.wait_for_stdout(&renamed).await;
        running.signal(signal);
        let output = running.wait().await;
        assert_eq!(output.code, Some(code));
        assert_eq!(output.stderr, format!("outpost: watching {folder}\n"));
    }
}

#[tokio::test]
async fn json_has_an_object_for_each_batch() {
    let user = new_user();
    let folder = folder(&user);
    let missing = format!("{folder}/no/such");
    let mut running = watching(&user, &["--json", "--no-recursive", &folder, &missing]).await;
    fs::write(format!("{folder}/a/unseen"), "").expect("a file");
    fs::write(format!("{folder}/b"), "").expect("a file");
    running.wait_for_stdout("}\n").await;
    fs::create_dir(format!("{folder}/no")).expect("a directory");
    fs::write(&missing, "").expect("a file");
    running.wait_for_stdout(&missing).await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    let batches: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let first = json!({"paths": [format!("{folder}/b")], "missed": false});
    assert_eq!(batches[0], first, "{batches:?}");
    let last = batches.last().expect("a batch");
    let paths = last["paths"].as_array().expect("a list");
    assert!(paths.contains(&json!(missing)), "{batches:?}");
}

/// Makes programs that this thread starts obey the modes of files, also as root.
fn obey_modes() {
    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
    for capability in [CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH] {
        // Other users may not, and have no capabilities.
        let _ = remove_capability_from_bounding_set(capability);
    }
}

#[tokio::test]
async fn unreadable_directory_is_named_and_watched_once_it_can_be_read() {
    obey_modes();
    let user = new_user();
    let folder = folder(&user);
    let secret = format!("{folder}/secret");
    fs::create_dir(&secret).expect("a directory");
    let chmod = |mode| fs::set_permissions(&secret, fs::Permissions::from_mode(mode));
    chmod(0).expect("a mode");
    let text = format!("cannot read {secret:?}: changes in it are missed until");
    // It is no change.
    let mode = ["--once", &folder, "--", "stat", "-c", "%a", &secret];
    let mut command = watching(&user, &mode).await;
    command.wait_for_stderr(&text).await;
    let mut json = watching(&user, &["--json", &folder]).await;
    json.wait_for_stdout("}\n").await;
    chmod(0o700).expect("a mode");
    assert_eq!(command.wait().await.stdout, "700\n");
    fs::write(format!("{secret}/f"), "").expect("a file");
    json.wait_for_stdout("/secret/f\"").await;
    json.signal(Signal::INT);
    let output = json.wait().await;
    let first: Value = serde_json::from_str(output.stdout.lines().next().expect("a line")).unwrap();
    let expected = json!({"paths": [], "missed": false, "unreadable": [secret]});
    assert_eq!(first, expected);
}

#[tokio::test]
async fn command_runs_after_each_batch_of_changes() {
    let user = new_user();
    let folder = folder(&user);
    let log = path_text(&user.dir().join("log"));
    let go = path_text(&user.dir().join("go"));
    let script = format!("echo run >> {log}; until [ -e {go} ]; do sleep 0.02; done; exit 3");
    let mut running = watching(&user, &[&folder, "--", "sh", "-c", &script]).await;
    fs::write(format!("{folder}/a/f"), "").expect("a file");
    content(&log, "run\n").await;
    // Changes during the command start it once more.
    for name in ["1", "2", "3"] {
        fs::write(format!("{folder}/{name}"), "").expect("a file");
    }
    fs::write(&go, "").expect("a file");
    content(&log, "run\nrun\n").await;
    let note = "outpost: the command exited with 3; waiting for changes\n";
    running.wait_for_stderr(&note.repeat(2)).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    content(&log, "run\nrun\nrun\n").await;
    running.wait_for_stderr(&note.repeat(3)).await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(130), ""));
}

#[tokio::test]
async fn signal_ends_the_command_and_the_watch() {
    let user = new_user();
    let folder = folder(&user);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let args = [&*folder, "--", "sh", "-c", "echo started; exec sleep 60"];
        let mut running = watching(&user, &args).await;
        fs::write(format!("{folder}/f"), "").expect("a file");
        running.wait_for_stdout("started\n").await;
        running.signal(signal);
        assert_eq!(running.wait().await.code, Some(code));
    }
    user.tag().gone().await;
}

#[tokio::test]
async fn once_ends_after_the_first_changes() {
    let user = new_user();
    let folder = folder(&user);
    let rows = [
        (vec![], Some(0), format!("{folder}/f\n"), ""),
        (
            vec!["--", "sh", "-c", "echo ran; exit 7"],
            Some(7),
            "ran\n".to_owned(),
            "",
        ),
        (
            vec!["--", "sh", "-c", "echo \"$WATCH_PATHS,$WATCH_MISSED\""],
            Some(0),
            format!("{folder}/f\n,0\n"),
            "",
        ),
        (
            vec!["--", "/no/such/program"],
            Some(127),
            String::new(),
            "outpost: cannot execute \"/no/such/program\": No such file or directory (os error 2)\n",
        ),
    ];
    for (command, code, stdout, error) in rows {
        let args = [vec!["--once", &folder], command].concat();
        let mut running = watching(&user, &args).await;
        fs::write(format!("{folder}/f"), "").expect("a file");
        let output = running.wait().await;
        assert_eq!((output.code, output.stdout), (code, stdout));
        let stderr = format!("outpost: watching {folder}\n{error}");
        assert_eq!(output.stderr, stderr);
    }
}

#[tokio::test]
async fn server_watches_and_runs_the_command() {
    // The server is the parent of its processes then.
    let server = outpost().args(&["--trees", "group"]).start().await;
    let user = new_user();
    let url = server.urls()[0].as_str();
    let folder = path_text(server.dir());
    let log = path_text(&user.dir().join("log"));
    let script = format!("echo $PPID >> {log}");
    // The command runs on the server of --on, and here without it.
    let there = ["--on", url, &folder];
    let given = format!("{url}:{folder}");
    let here = [given.as_str()];
    let mut parents = Vec::new();
    for place in [&there[..], &here[..]] {
        let args = [&["--once"], place, &["--", "sh", "-c", &script]].concat();
        let mut running = watching(&user, &args).await;
        fs::write(server.dir().join("f"), "").expect("a file");
        assert_eq!(running.wait().await.code, Some(0));
        parents.push(fs::read_to_string(&log).expect("a log"));
        fs::remove_file(&log).expect("a log");
    }
    assert_eq!(parents[0].trim(), server.pid().to_string());
    assert_ne!(parents[0], parents[1]);
    let mut running = watching(&user, &["--once", &given]).await;
    fs::write(server.dir().join("f"), "").expect("a file");
    assert_eq!(running.wait().await.stdout, format!("{given}/f\n"));
}

#[tokio::test]
async fn watch_goes_on_after_a_cut_and_tells_what_it_missed() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let user = new_user();
    let folder = path_text(server.dir());
    let mut running = watching(&user, &["--on", link.url(), &folder]).await;
    link.cut().await;
    running
        .wait_for_stderr("outpost: changes may have been missed\n")
        .await;
    fs::write(server.dir().join("f"), "").expect("a file");
    running.wait_for_stdout(&format!("{folder}/f\n")).await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    assert_eq!(output.code, Some(130));
    let expected = "outpost: connection lost, reconnecting…\noutpost: connected again\n";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[tokio::test]
async fn invalid_command_lines_are_rejected() {
    let user = new_user();
    for args in [
        &["watch"][..],
        &["watch", "-"],
        &["watch", ":/x"],
        &["watch", "--json", "/x", "--", "true"],
        &["watch", "--on", "nosuchhost", "/x"],
        &["watch", "-0", "--json", "/x"],
        &["watch", "-0", "/x", "--", "true"],
    ] {
        let output = user.command().run(args).await;
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        assert_eq!(output.stdout, "");
    }
}
