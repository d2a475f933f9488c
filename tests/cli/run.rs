//! Tests `outpost run` without a server.

use std::os::unix::process::ExitStatusExt as _;

use outpost_testkit::{SequenceCheck, TestTag, deadline};
use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;

use super::{command, finish, outcome, send, text};

#[tokio::test]
async fn streams_are_separate_and_exit_code_is_passed_on() {
    let output = outcome(
        &["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"],
        b"",
    )
    .await;
    assert_eq!(text(&output.stdout), "out\n");
    assert_eq!(text(&output.stderr), "err\n");
    assert_eq!(output.status.code(), Some(7));
}

#[tokio::test]
async fn exit_codes_follow_shell_conventions() {
    for (command, code, printed) in [
        (&["true"][..], 0, ""),
        (&["sh", "-c", "exit 255"], 255, ""),
        (&["sh", "-c", "kill -TERM $$"], 143, ""),
        (&["sh", "-c", "kill -KILL $$"], 137, ""),
        (
            &["/no/such/program"],
            127,
            "outpost: cannot execute \"/no/such/program\": No such file or directory (os error 2)\n",
        ),
        (
            &["/etc/passwd"],
            126,
            "outpost: cannot execute \"/etc/passwd\": Permission denied (os error 13)\n",
        ),
    ] {
        let args: Vec<_> = ["run", "--"].iter().chain(command).copied().collect();
        let output = outcome(&args, b"").await;
        assert_eq!(output.status.code(), Some(code), "{command:?}");
        assert_eq!(text(&output.stderr), printed, "{command:?}");
    }
}

#[tokio::test]
async fn input_is_forwarded_to_its_end() {
    let output = outcome(&["run", "--", "sort"], b"pear\napple\n").await;
    assert_eq!(text(&output.stdout), "apple\npear\n");
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test]
async fn unread_input_does_not_block() {
    let much = vec![b'x'; 4 << 20];
    let output = outcome(&["run", "--", "sh", "-c", "exec 0<&-; exit 3"], &much).await;
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr), "");
}

#[tokio::test]
async fn timeout_exits_with_124_and_leaves_nothing() {
    let script = "setsid sleep 1000 & sleep 1000";
    let args = ["run", "--timeout", "200ms", "--", "sh", "-c", script];
    assert_eq!(outcome(&args, b"").await.status.code(), Some(124));
}

#[tokio::test]
async fn exiting_command_leaves_nothing() {
    let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo done";
    let output = outcome(&["run", "--", "sh", "-c", script], b"").await;
    assert_eq!(text(&output.stdout), "done\n");
}

#[tokio::test]
async fn environment_and_directory_are_inherited_and_can_be_set() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("it exists");
    let script = "pwd; echo $TERM $LC_ALL $A_TOKEN $B $C; command -v sh >/dev/null && echo path";
    let tag = TestTag::new();
    let args = [
        "run",
        "--cwd",
        dir.to_str().expect("UTF-8"),
        "--env",
        "B=b",
        "--env",
        "C",
        "--env",
        "NOT_THERE",
        "--",
        "sh",
        "-c",
        script,
    ];
    let child = command(&args, &tag)
        .env("TERM", "xterm-test")
        .env("LC_ALL", "C.UTF-8")
        .env("A_TOKEN", "mine")
        .env("B", "other")
        .env("C", "c")
        .spawn()
        .expect("spawn");
    let output = finish(child).await;
    let expected = format!("{}\nxterm-test C.UTF-8 mine b c\npath\n", dir.display());
    assert_eq!(text(&output.stdout), expected);
}

#[tokio::test]
async fn hundred_megabytes_arrive_unchanged() {
    let tag = TestTag::new();
    let mut child = command(&["run", "--", "seq", "1", "12777778"], &tag)
        .spawn()
        .expect("spawn");
    let mut stdout = child.stdout.take().expect("piped");
    let mut lines = SequenceCheck::default();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = deadline::expect_soon("more output", stdout.read(&mut buffer));
        match read.await.expect("readable") {
            0 => break,
            count => lines.take(&buffer[..count]),
        }
    }
    assert_eq!(lines.count(), 12_777_778);
    assert_eq!(finish(child).await.status.code(), Some(0));
}

#[tokio::test]
async fn broken_pipe_ends_the_command_quietly() {
    let tag = TestTag::new();
    let mut child = command(&["run", "--", "yes"], &tag).spawn().expect("spawn");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 100]).await.expect("it writes");
    drop(stdout);
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(text(&output.stderr), "");
    tag.gone().await;
}

#[tokio::test]
async fn sigterm_terminates_the_command() {
    for (script, code) in [
        ("echo ready; exec sleep 1000", 143),
        (
            "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done",
            5,
        ),
        (
            "trap '' TERM HUP; echo ready; while :; do sleep 0.02; done",
            137,
        ),
    ] {
        let tag = TestTag::new();
        let mut child = command(&["run", "--", "sh", "-c", script], &tag)
            .spawn()
            .expect("spawn");
        let mut stdout = child.stdout.take().expect("piped");
        stdout.read_exact(&mut [0; 6]).await.expect("ready");
        send(&child, Signal::TERM);
        assert_eq!(finish(child).await.status.code(), Some(code), "{script}");
        tag.gone().await;
    }
}

#[tokio::test]
async fn usage_errors_exit_with_2() {
    for args in [
        &["run"][..],
        &["run", "--env", "=x", "--", "true"],
        &["run", "--timeout", "5 parsecs", "--", "true"],
        &["run", "--timeout", "0", "--", "true"],
        &["run", "--timeout", "0s", "--", "true"],
        &["run", "-d", "-i", "--", "true"],
        &["run", "-x", "true"],
        &["run", "--on", "http://nowhere", "--", "true"],
    ] {
        let output = outcome(args, b"").await;
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[tokio::test]
async fn misspelt_option_is_not_a_command() {
    let output = outcome(&["run", "--timeuot", "3s", "true"], b"").await;
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stderr);
    assert!(
        printed.contains("--timeuot") && printed.contains("'--timeout'"),
        "{printed}"
    );
    // All arguments after the command's name belong to the command.
    let output = outcome(&["run", "echo", "-n", "--timeuot", "--", "-t"], b"").await;
    assert_eq!(text(&output.stdout), "--timeuot -- -t");
}

#[tokio::test]
async fn sigkill_of_outpost_kills_the_tree() {
    let tag = TestTag::new();
    let script = "setsid sleep 1000 & echo ready; sleep 1000";
    let mut child = command(&["run", "--", "sh", "-c", script], &tag)
        .spawn()
        .expect("spawn");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 6]).await.expect("ready");
    send(&child, Signal::KILL);
    tag.gone().await;
}

#[tokio::test]
async fn daemon_holding_the_output_is_not_waited_for() {
    for flags in [&[][..], &["--timeout", "500ms"]] {
        let command = ["--", "sh", "-c", "sleep 1000 & echo done; exit 3"];
        let args: Vec<_> = ["run"]
            .iter()
            .chain(flags)
            .chain(&command)
            .copied()
            .collect();
        let output = outcome(&args, b"").await;
        assert_eq!(text(&output.stdout), "done\n");
        assert_eq!(output.status.code(), Some(3), "{flags:?}");
    }
}

#[tokio::test]
async fn blocked_stdout_does_not_delay_the_exit() {
    let tag = TestTag::new();
    let script = "trap '' TERM HUP; head -c 20000000 /dev/zero";
    let mut child = command(&["run", "--", "sh", "-c", script], &tag)
        .spawn()
        .expect("spawn");
    let stdout = child.stdout.take().expect("piped");
    deadline::poll_until("a full pipe", || {
        // The program enlarges the pipe when there is much output.
        let capacity = rustix::pipe::fcntl_getpipe_size(&stdout).expect("a pipe") as u64;
        let unread = rustix::io::ioctl_fionread(&stdout).expect("a pipe");
        // The last page may have space that a write of a page doesn't fit into.
        (unread + 4096 > capacity).then_some(())
    })
    .await;
    let status = deadline::poll_until("the end of the program", || {
        let status = child.try_wait().expect("try_wait");
        if status.is_none() {
            send(&child, Signal::TERM);
        }
        status
    })
    .await;
    assert_eq!(status.code(), Some(143));
    tag.gone().await;
}

#[tokio::test]
async fn interrupted_command_makes_outpost_die_of_sigint() {
    for (script, code, signal) in [
        ("echo ready; exec sleep 1000", None, Some(2)),
        (
            "trap 'exit 6' INT; echo ready; while :; do sleep 0.02; done",
            Some(6),
            None,
        ),
    ] {
        let tag = TestTag::new();
        let mut child = command(&["run", "--", "sh", "-c", script], &tag)
            .spawn()
            .expect("spawn");
        let mut stdout = child.stdout.take().expect("piped");
        stdout.read_exact(&mut [0; 6]).await.expect("ready");
        send(&child, Signal::INT);
        let status = finish(child).await.status;
        assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
        tag.gone().await;
    }
}

#[tokio::test]
async fn missing_directory_is_not_a_missing_program() {
    let output = outcome(&["run", "--cwd", "/no/such", "--", "true"], b"").await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "outpost: cannot enter directory \"/no/such\": No such file or directory (os error 2)\n"
    );
    let dir = tempfile::tempdir().expect("a directory");
    let tag = TestTag::new();
    let mut shell = tokio::process::Command::new("sh");
    let child = shell
        .args(["-c", "rmdir \"$PWD\" && exec \"$0\" run -- true"])
        .arg(crate::outpost().binary())
        .current_dir(dir.path())
        .env(TestTag::VARIABLE, tag.as_str())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("spawn");
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stderr);
    assert!(
        printed.contains("the current directory has been deleted"),
        "{printed}"
    );
    tag.gone().await;
}
