//! `outpost run` without a server.

use std::os::unix::process::ExitStatusExt as _;

use outpost_testkit::{CountedLines, Mark, patience};
use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;

use super::{command, ended, outcome, send, text};

#[tokio::test]
async fn output_and_errors_stay_apart_and_the_exit_code_is_the_commands() {
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
async fn exit_codes_are_those_of_a_shell() {
    for (command, code, said) in [
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
        assert_eq!(text(&output.stderr), said, "{command:?}");
    }
}

#[tokio::test]
async fn input_is_passed_on_to_its_end() {
    let output = outcome(&["run", "--", "sort"], b"pear\napple\n").await;
    assert_eq!(text(&output.stdout), "apple\npear\n");
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_obstacle() {
    let much = vec![b'x'; 4 << 20];
    let output = outcome(&["run", "--", "sh", "-c", "exec 0<&-; exit 3"], &much).await;
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr), "");
}

#[tokio::test]
async fn time_that_is_over_is_exit_code_124_and_leaves_nothing() {
    let script = "setsid sleep 1000 & sleep 1000";
    let args = ["run", "--timeout", "200ms", "--", "sh", "-c", script];
    assert_eq!(outcome(&args, b"").await.status.code(), Some(124));
}

#[tokio::test]
async fn a_command_that_ends_leaves_nothing_behind() {
    let script = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo done";
    let output = outcome(&["run", "--", "sh", "-c", script], b"").await;
    assert_eq!(text(&output.stdout), "done\n");
}

#[tokio::test]
async fn the_environment_and_the_directory_are_ours_and_can_be_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("it is there");
    let script = "pwd; echo $TERM $LC_ALL $A_TOKEN $B $C; command -v sh >/dev/null && echo path";
    let mark = Mark::new();
    let args = [
        "run",
        "--cwd",
        folder.to_str().expect("it is text"),
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
    let child = command(&args, &mark)
        .env("TERM", "xterm-test")
        .env("LC_ALL", "C.UTF-8")
        .env("A_TOKEN", "mine")
        .env("B", "other")
        .env("C", "c")
        .spawn()
        .expect("it starts");
    let output = ended(child).await;
    let expected = format!("{}\nxterm-test C.UTF-8 mine b c\npath\n", folder.display());
    assert_eq!(text(&output.stdout), expected);
}

#[tokio::test]
async fn a_hundred_megabytes_come_byte_for_byte() {
    let mark = Mark::new();
    let mut child = command(&["run", "--", "seq", "1", "12777778"], &mark)
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    let mut lines = CountedLines::default();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = patience::soon("more output", stdout.read(&mut buffer));
        match read.await.expect("it can be read") {
            0 => break,
            count => lines.take(&buffer[..count]),
        }
    }
    assert_eq!(lines.count(), 12_777_778);
    assert_eq!(ended(child).await.status.code(), Some(0));
}

#[tokio::test]
async fn who_reads_no_further_ends_it_quietly() {
    let mark = Mark::new();
    let mut child = command(&["run", "--", "yes"], &mark)
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut [0; 100]).await.expect("it writes");
    drop(stdout);
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(text(&output.stderr), "");
    mark.gone().await;
}

#[tokio::test]
async fn who_asks_us_to_end_ends_the_command() {
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
        let mark = Mark::new();
        let mut child = command(&["run", "--", "sh", "-c", script], &mark)
            .spawn()
            .expect("it starts");
        let mut stdout = child.stdout.take().expect("it was asked for");
        stdout.read_exact(&mut [0; 6]).await.expect("it is ready");
        send(&child, Signal::TERM);
        assert_eq!(ended(child).await.status.code(), Some(code), "{script}");
        mark.gone().await;
    }
}

#[tokio::test]
async fn mistakes_on_the_command_line_are_exit_code_2() {
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
async fn a_slip_of_the_pen_is_not_a_command() {
    let output = outcome(&["run", "--timeuot", "3s", "true"], b"").await;
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("--timeuot") && said.contains("'--timeout'"),
        "{said}"
    );
    // Behind the command's name everything is the command's.
    let output = outcome(&["run", "echo", "-n", "--timeuot", "--", "-t"], b"").await;
    assert_eq!(text(&output.stdout), "--timeuot -- -t");
}

#[tokio::test]
async fn whoever_kills_us_kills_the_tree() {
    let mark = Mark::new();
    let script = "setsid sleep 1000 & echo ready; sleep 1000";
    let mut child = command(&["run", "--", "sh", "-c", script], &mark)
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut [0; 6]).await.expect("it is ready");
    send(&child, Signal::KILL);
    mark.gone().await;
}

#[tokio::test]
async fn a_daemon_that_holds_the_output_is_not_waited_for() {
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
async fn output_that_nobody_takes_is_no_reason_to_stay() {
    let mark = Mark::new();
    let script = "trap '' TERM HUP; head -c 20000000 /dev/zero";
    let mut child = command(&["run", "--", "sh", "-c", script], &mark)
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut [0; 100]).await.expect("it writes");
    let status = patience::seen("the end of the program", || {
        let status = child.try_wait().expect("it can be asked");
        if status.is_none() {
            send(&child, Signal::TERM);
        }
        status
    })
    .await;
    assert_eq!(status.code(), Some(143));
    mark.gone().await;
}

#[tokio::test]
async fn what_an_interrupt_has_ended_ends_us_the_same_way() {
    for (script, code, signal) in [
        ("echo ready; exec sleep 1000", None, Some(2)),
        (
            "trap 'exit 6' INT; echo ready; while :; do sleep 0.02; done",
            Some(6),
            None,
        ),
    ] {
        let mark = Mark::new();
        let mut child = command(&["run", "--", "sh", "-c", script], &mark)
            .spawn()
            .expect("it starts");
        let mut stdout = child.stdout.take().expect("it was asked for");
        stdout.read_exact(&mut [0; 6]).await.expect("it is ready");
        send(&child, Signal::INT);
        let status = ended(child).await.status;
        assert_eq!((status.code(), status.signal()), (code, signal), "{script}");
        mark.gone().await;
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_no_missing_program() {
    let output = outcome(&["run", "--cwd", "/no/such", "--", "true"], b"").await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "outpost: cannot enter directory \"/no/such\": No such file or directory (os error 2)\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let mark = Mark::new();
    let mut shell = tokio::process::Command::new("sh");
    let child = shell
        .args(["-c", "rmdir \"$PWD\" && exec \"$0\" run -- true"])
        .arg(crate::outpost().binary())
        .current_dir(folder.path())
        .env(Mark::VARIABLE, mark.as_str())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("the current directory has been deleted"),
        "{said}"
    );
    mark.gone().await;
}
