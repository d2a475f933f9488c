//! Tests the limits of `outpost run` and `outpost sandbox`.

use outpost_testkit::deadline::expect_soon;

use super::{new_user, outcome, text};

#[tokio::test]
async fn line_on_stderr_names_the_limit_that_ended_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("large");
    let write = format!("exec head -c 10000 /dev/zero > {}", file.display());
    for (flags, script, code, printed) in [
        (
            ["--cpu-time", "1s"],
            "while :; do :; done",
            152,
            "outpost: the CPU time limit of 1s ended the command\n",
        ),
        (
            ["--file-size", "4KiB"],
            &*write,
            153,
            "outpost: the file size limit of 4.0 KiB ended the command\n",
        ),
        (["--open-files", "64"], "exit 3", 3, ""),
        (["--cpu-time", "100"], "kill -KILL $$", 137, ""),
    ] {
        let [flag, value] = flags;
        let args = ["run", flag, value, "--", "/bin/sh", "-c", script];
        let output = outcome(&args, b"").await;
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert_eq!(text(&output.stderr), printed, "{args:?}");
    }
}

#[tokio::test]
async fn limit_that_is_too_high_is_refused() {
    for command in ["run", "sandbox"] {
        let args = [command, "--open-files", "99999999999", "--", "true"];
        let output = outcome(&args, b"").await;
        assert_eq!(output.status.code(), Some(1), "{command}");
        let printed = text(&output.stderr);
        let message = "limit cannot be enforced on this executor: openFiles: ";
        assert!(printed.contains(message), "{command}: {printed}");
    }
}

#[tokio::test]
async fn limits_hold_in_a_sandbox() {
    let limits = [
        "--open-files",
        "77",
        "--cpu-time",
        "1",
        "--file-size",
        "4KiB",
    ];
    let print = "ulimit -n; ulimit -f; ulimit -t";
    let run = |script| {
        let script = ["--", "/bin/sh", "-c", script];
        [&["sandbox", "--cwd", "/tmp"][..], &limits, &script].concat()
    };
    let output = outcome(&run(print), b"").await;
    assert_eq!(
        text(&output.stdout),
        "77\n8\n1\n",
        "{}",
        text(&output.stderr)
    );
    let output = outcome(&run("while :; do :; done"), b"").await;
    assert_eq!(output.status.code(), Some(152));
    let printed = "outpost: the CPU time limit of 1s ended the command\n";
    assert_eq!(text(&output.stderr), printed);
}

#[tokio::test]
async fn limit_that_cannot_be_enforced_is_an_error() {
    // No cgroup is delegated to a program that shares its cgroup with the test; one that has the
    // controllers already enforces the limits.
    for flags in [
        &["--memory=64MiB"][..],
        &["--pids=20"],
        &["--cpus=1.5"],
        &["--memory=64MiB", "--pids=20"],
    ] {
        let args = [&["run"], flags, &["--", "echo", "ran"]].concat();
        let output = outcome(&args, b"").await;
        let stderr = text(&output.stderr);
        if output.status.success() {
            assert_eq!((text(&output.stdout), stderr), ("ran\n", ""));
            continue;
        }
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let message = "outpost: limit cannot be enforced on this executor: --";
        assert!(stderr.starts_with(message), "{stderr}");
        for flag in flags {
            let (name, _) = flag.split_once('=').expect("a value");
            assert!(stderr.contains(name), "{name}: {stderr}");
        }
        assert!(stderr.contains("Delegate=yes"), "{stderr}");
    }
}

#[tokio::test]
async fn invalid_limits_are_rejected() {
    for (flag, value, code) in [
        ("--memory", "lots", 2),
        ("--memory", "0", 1),
        ("--cpus", "many", 2),
        ("--cpus", "0", 1),
        ("--cpu-time", "500ms", 2),
        ("--pids", "-1", 2),
    ] {
        let flag = format!("{flag}={value}");
        let output = outcome(&["run", &flag, "--", "echo", "ran"], b"").await;
        assert_eq!(output.status.code(), Some(code), "{flag}");
        assert_eq!(text(&output.stdout), "", "{flag}");
    }
}

#[tokio::test]
async fn detached_work_that_a_limit_ended_is_marked() {
    let user = new_user();
    let script = "while :; do :; done";
    let run = [
        "run",
        "--detach",
        "--cpu-time",
        "1s",
        "--",
        "sh",
        "-c",
        script,
    ];
    let id = user.output(&run).await;
    let id = id.trim_end();
    let followed = expect_soon("its end", user.run(&["logs", "-f", id])).await;
    let printed = format!("outpost: a limit ended {id}: CPU time limit\n");
    assert_eq!(followed.stderr, printed);
    assert_eq!(user.run(&["logs", id]).await.stderr, printed);
    let listed = user.output(&["ps"]).await;
    assert!(listed.contains("exited 152, CPU time limit"), "{listed}");
    let attached = user.run(&["attach", id]).await;
    assert_eq!((attached.code, attached.stderr), (Some(152), printed));
    user.stop().await;
}
