//! Tests `outpost watch`: odd names, stdout that fails, paths that do not exist, and signals.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::Path, process::Stdio};

use outpost_testkit::{TestTag, deadline};
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr},
};

use super::{
    command, new_user,
    watch::{content, folder, path_text, watching},
};
use crate::{auth::new_token, outpost};

/// Starts `outpost watch` with a stdout, and waits until it watches.
async fn watching_to(
    stdout: Stdio,
    args: &[&str],
    tag: &TestTag,
) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut command = command(&[&["watch"], args].concat(), tag);
    let mut child = command.stdout(stdout).spawn().expect("a program");
    let stderr = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines();
    let line = deadline::expect_soon("a line", lines.next_line()).await;
    let line = line.expect("text").expect("a line");
    assert!(line.starts_with("outpost: watching "), "{line}");
    (child, lines)
}

#[tokio::test]
async fn odd_names_are_made_visible_and_stay_as_they_are_for_programs() {
    let user = new_user();
    let folder = folder(&user);
    let mut lines = watching(&user, &["--once", &folder]).await;
    let tag = TestTag::new();
    let (mut nulls, _stderr) = watching_to(Stdio::piped(), &["-0", "--once", &folder], &tag).await;
    let path = Path::new(&folder).join(OsStr::from_bytes(b"a\n\x1b[1mb\xff"));
    fs::write(&path, "").expect("a file");
    let visible = format!("{folder}/a\\n\\u{{1b}}[1mb\u{fffd}\n");
    assert_eq!(lines.wait().await.stdout, visible);
    let mut printed = Vec::new();
    let mut stdout = nulls.stdout.take().expect("a pipe");
    deadline::expect_soon("the end", stdout.read_to_end(&mut printed))
        .await
        .expect("output");
    assert_eq!(printed, [path.as_os_str().as_bytes(), b"\0"].concat());
    nulls.wait().await.expect("the end");
}

#[tokio::test]
async fn closed_pipe_ends_the_watch_as_sigpipe_would() {
    let user = new_user();
    let folder = folder(&user);
    let tag = TestTag::new();
    let (mut child, mut stderr) = watching_to(Stdio::piped(), &[&folder], &tag).await;
    drop(child.stdout.take());
    fs::write(format!("{folder}/f"), "").expect("a file");
    let status = deadline::expect_soon("the end", child.wait())
        .await
        .expect("a status");
    assert_eq!(status.code(), Some(141));
    assert_eq!(stderr.next_line().await.expect("text"), None);
}

#[tokio::test]
async fn failed_output_is_an_error_that_names_stdout() {
    let user = new_user();
    let folder = folder(&user);
    let tag = TestTag::new();
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let (mut child, mut stderr) = watching_to(full.into(), &[&folder], &tag).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    let status = deadline::expect_soon("the end", child.wait())
        .await
        .expect("a status");
    assert_eq!(status.code(), Some(1));
    let text = "outpost: cannot write to stdout: No space left on device (os error 28)";
    assert_eq!(
        stderr.next_line().await.expect("text").as_deref(),
        Some(text)
    );
}

#[tokio::test]
async fn second_interrupt_kills_a_command_that_ignores_the_first() {
    let user = new_user();
    let folder = folder(&user);
    let script = "trap '' INT; echo started; while :; do sleep 60; done";
    let mut running = watching(&user, &[&folder, "--", "sh", "-c", script]).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    running.wait_for_stdout("started\n").await;
    running.signal(Signal::INT);
    let note = "outpost: waiting for the command to end; press Ctrl-C again to kill it\n";
    running.wait_for_stderr(note).await;
    running.signal(Signal::INT);
    assert_eq!(running.wait().await.code, Some(130));
    user.tag().gone().await;
}

#[tokio::test]
async fn command_that_handles_the_interrupt_ends_the_watch_when_it_ends() {
    let user = new_user();
    let folder = folder(&user);
    let script = "trap 'echo handled; exit 0' INT; echo started; while :; do sleep 0.01; done";
    let mut running = watching(&user, &[&folder, "--", "sh", "-c", script]).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    running.wait_for_stdout("started\n").await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    assert_eq!(output.code, Some(130));
    assert_eq!(output.stdout, "started\nhandled\n");
}

#[tokio::test]
async fn interrupt_after_the_exit_of_the_command_ends_the_watch() {
    let user = new_user();
    let folder = folder(&user);
    let log = path_text(&user.dir().join("log"));
    // A leftover process holds the streams of the command open.
    let script = format!(
        "(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; echo gone > {log}; exec sleep 60) &"
    );
    let mut running = watching(&user, &[&folder, "--", "sh", "-c", &script]).await;
    fs::write(format!("{folder}/f"), "").expect("a file");
    content(&log, "gone\n").await;
    running.signal(Signal::INT);
    let output = running.wait().await;
    assert_eq!(output.code, Some(130), "{}", output.stderr);
}

#[tokio::test]
async fn path_that_does_not_exist_is_said_to_be_waited_for() {
    let server = outpost().start().await;
    let user = new_user();
    let folder = folder(&user);
    let missing = format!("{folder}/no/such");
    let url = server.urls()[0].as_str();
    fs::write(format!("{folder}/f"), "").expect("a file");
    let below_file = format!("{folder}/f/g");
    let long = format!("{folder}/{}", "x".repeat(300));
    for on in [&[][..], &["--on", url]] {
        let impossible = [&["watch"], on, &[&*long]].concat();
        let output = user.run(&impossible).await;
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        assert!(
            output.stderr.contains("File name too long"),
            "{}",
            output.stderr
        );
        let mut running = watching(&user, &[on, &[&*below_file]].concat()).await;
        running
            .wait_for_stderr("/f/g\" does not exist yet; waiting for it\n")
            .await;
        running.signal(Signal::INT);
        assert_eq!(running.wait().await.code, Some(130));
        let args = [on, &["--once", &folder, &missing]].concat();
        let mut running = watching(&user, &args).await;
        let note = format!("outpost: {missing:?} does not exist yet; waiting for it\n");
        running.wait_for_stderr(&note).await;
        fs::create_dir(format!("{folder}/no")).expect("a directory");
        let output = running.wait().await;
        assert_eq!(output.code, Some(0));
        let watching = format!("outpost: watching {folder}, {missing}\n");
        assert_eq!(output.stderr, watching + &note);
        fs::remove_dir(format!("{folder}/no")).expect("a removal");
    }
}

#[tokio::test]
async fn mistyped_host_is_an_error() {
    let user = new_user();
    let dir = user.dir();
    fs::write(dir.join("f"), "").expect("a file");
    fs::create_dir(dir.join("x:dir")).expect("a directory");
    let text = path_text(dir);
    let run = async |args: &[&str]| {
        let command = user.command().after_shell(&format!("cd {text}"));
        command.run(args).await
    };
    for args in [
        &["watch", "biuld:/path"][..],
        &["watch", ".", "biuld:path"],
        &["cp", "f", "biuld:/path"],
        &["cp", "f", "biuld:path"],
        &["cp", "biuld:path", "g"],
        &["ls", "biuld:path"],
        &["cat", "biuld:path"],
    ] {
        let output = run(args).await;
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
        let given = args.iter().find(|arg| arg.contains(':')).expect("a path");
        let error = format!(
            "outpost: cannot use {given}: there is no host biuld, and no such file here; `outpost hosts \
             list` lists the hosts, and ./{given} is always a file here\n"
        );
        assert_eq!(output.stderr, error);
    }
    let mut left: Vec<_> = fs::read_dir(dir).expect("a directory").collect();
    left.retain(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.as_bytes().starts_with(b"biuld") || name == "g"
    });
    assert!(left.is_empty(), "{left:?}");
    // File names may contain colons.
    for (to, name) in [
        ("./biuld:f", "biuld:f"),
        ("x:dir", "x:dir/f"),
        ("x:dir/g", "x:dir/g"),
    ] {
        let output = run(&["cp", "-q", "f", to]).await;
        assert_eq!(output.code, Some(0), "{to}: {output:?}");
        assert!(dir.join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn denial_is_told_once() {
    let user = new_user();
    let config = user.dir().join("outpost.toml");
    fs::write(&config, "[principals.p]\nscopes = [\"exec\"]\n").expect("a file");
    let [config, tokens] = [config, user.dir().join("tokens.toml")].map(|path| path_text(&path));
    let token = new_token(&tokens, "p", &[]).await;
    let server = outpost().args(&["--tokens-file", &tokens, "--config", &config]);
    let server = server.start().await;
    let command = user.command().env("OUTPOST_TOKEN", &token);
    let output = command
        .run(&["watch", "--on", &server.urls()[0], "/srv"])
        .await;
    let text = "outpost: cannot watch \"/srv\": not permitted: watch is required\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), text));
}
