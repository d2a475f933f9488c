//! Tests which program runs, with which attributes, and start failures.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Start, deadline, sh};
use serde_json::json;

use crate::{outpost, ready};

/// Creates a script that prints its name.
fn program(dir: &Path, name: &str) -> PathBuf {
    fs::create_dir_all(dir).expect("a directory");
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\necho I am {name}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn program_is_looked_up_in_the_childs_path() {
    let (server, client) = ready().await;
    let dir = server.dir().join("bin");
    program(&dir, "only-here");
    let path = format!("/nowhere:{}:/bin", dir.display());
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = Start::new(id, &["only-here"])
            .env(&[("PATH", &path)])
            .with("tty", tty);
        let log = client.run(start).await;
        assert_eq!(log.text().trim_end(), "I am only-here");
    }
}

#[tokio::test]
async fn program_is_not_looked_up_in_the_servers_path() {
    let dir = tempfile::tempdir().expect("a directory");
    program(dir.path(), "only-there");
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let server = outpost().env("PATH", &path).start().await;
    let client = server.client().await;
    let start = Start::new("p", &["only-there"]).env(&[("PATH", "/usr/bin:/bin")]);
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32603);
    assert!(
        error.message.contains("No such file or directory"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn missing_path_uses_the_default() {
    let dir = tempfile::tempdir().expect("a directory");
    program(dir.path(), "true");
    let server = outpost().env("PATH", text(dir.path())).start().await;
    let client = server.client().await;
    let log = client.run(Start::new("p", &["true"]).env(&[])).await;
    assert_eq!((log.text().as_str(), log.code()), ("", 0));
    let log = client
        .run(Start::new("q", &["env"]).env(&[("ONLY", "this")]))
        .await;
    assert_eq!(log.text(), "ONLY=this\n", "nothing is added for the lookup");
}

#[tokio::test]
async fn name_with_a_slash_is_relative_to_the_working_directory() {
    let (server, client) = ready().await;
    program(&server.dir().join("sub"), "tool");
    let start = Start::new("p", &["sub/tool"]).cwd(server.dir());
    assert_eq!(client.run(start).await.text(), "I am tool\n");
    let start = Start::new("q", &["./tool"]).cwd(&server.dir().join("sub"));
    assert_eq!(client.run(start).await.text(), "I am tool\n");
}

/// Checks that a start fails, on pipes and on a PTY, and leaves nothing behind.
async fn cannot_run(client: &Client, start: Start, message: &str) {
    for tty in [false, true] {
        let error = client.start_fails(start.clone().with("tty", tty)).await;
        assert_eq!(error.code, -32603, "{}", error.message);
        assert!(error.message.contains(message), "{}", error.message);
        let error = client
            .call_fails("process/read", json!({"processId": "bad"}))
            .await;
        assert_eq!(error.parts(), (-32600, "unknown process id bad"));
        assert_eq!(client.listed("bad").await, None);
        assert!(client.event_log("bad").events.is_empty());
    }
}

#[tokio::test]
async fn exec_failure_has_the_systems_message() {
    let (server, client) = ready().await;
    let dir = server.dir();
    let plain = dir.join("plain");
    fs::write(&plain, "echo no\n").expect("a file");
    let garbage = program(dir, "garbage");
    fs::write(&garbage, [0x7f, 0, 1, 2, 3, 0xff, 0xfe]).expect("a file");
    let lost = program(dir, "lost");
    fs::write(&lost, "#!/no/such/interpreter\n").expect("a file");
    let cases = [
        (
            vec!["/no/such/program"],
            "No such file or directory (os error 2)",
        ),
        (
            vec!["no-such-program"],
            "No such file or directory (os error 2)",
        ),
        (vec![""], "No such file or directory (os error 2)"),
        (vec![text(&plain)], "Permission denied (os error 13)"),
        (vec![text(dir)], "Permission denied (os error 13)"),
        (vec![text(&garbage)], "Exec format error (os error 8)"),
        (vec![text(&lost)], "No such file or directory (os error 2)"),
        (vec!["/etc/passwd/x"], "Not a directory (os error 20)"),
    ];
    for (argv, message) in cases {
        cannot_run(&client, Start::new("bad", &argv), message).await;
    }
    let huge = "x".repeat(256 * 1024);
    let too_long = "Argument list too long (os error 7)";
    cannot_run(&client, Start::new("bad", &["true", &huge]), too_long).await;
    let missing = Start::new("bad", &["true"]).with("cwd", "file:///no/such/folder");
    cannot_run(&client, missing, "No such file or directory (os error 2)").await;
    let file = Start::new("bad", &["true"]).with("cwd", "file:///etc/passwd");
    cannot_run(&client, file, "Not a directory (os error 20)").await;
    // The id was not taken.
    assert_eq!(client.run(Start::new("bad", &["true"])).await.code(), 0);
}

#[tokio::test]
async fn nul_bytes_are_rejected() {
    let (_server, client) = ready().await;
    let rejected = [
        Start::new("bad", &["true", "a\0b"]),
        Start::new("bad", &["tr\0ue"]),
        Start::new("bad", &["true"]).with("arg0", "a\0b"),
        Start::new("bad", &["true"]).env(&[("A", "b\0c")]),
        Start::new("bad", &["true"]).env(&[("A\0B", "c")]),
    ];
    for start in rejected {
        let error = client.start_fails(start).await;
        assert!(matches!(error.code, -32602 | -32603), "{error:?}");
        assert_eq!(client.listed("bad").await, None);
    }
}

#[tokio::test]
async fn failed_starts_leave_no_descriptors_or_children() {
    let (server, client) = ready().await;
    let fail = async || {
        for tty in [false, true] {
            let start = Start::new("bad", &["/no/such/program"])
                .stdin()
                .with("tty", tty);
            client.start_fails(start).await;
        }
    };
    fail().await;
    let before = server.stats();
    let (files, children) = (before.open_files(), before.children().len());
    for _ in 0..50 {
        fail().await;
    }
    deadline::poll_until("the end of all descriptors and children", || {
        let stats = server.stats();
        // The server may hold a few ready for the next start.
        let few = stats.open_files() <= files + 8 && stats.children().len() <= children + 4;
        (few && stats.zombies().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn child_leads_its_own_process_group() {
    let (_server, client) = ready().await;
    // Pid, process group and session are the fields 1, 5 and 6 of /proc/pid/stat.
    let script = "cut -d' ' -f1,5,6 /proc/$$/stat";
    let log = client.run(sh("pipes", script)).await;
    let fields: Vec<_> = log.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(fields[0], fields[1], "{fields:?}");
    let log = client.run(sh("pty", script).tty()).await;
    let fields: Vec<_> = log.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(
        (&fields[0], &fields[0]),
        (&fields[1], &fields[2]),
        "{fields:?}"
    );
}

#[tokio::test]
async fn child_inherits_no_descriptors() {
    let (_server, client) = ready().await;
    // Descriptors that could leak: other children's pipes and the server's sockets.
    client.start(sh("other", "read x").stdin()).await;
    client.start(sh("another", "read x").tty()).await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        // The fourth descriptor is the directory that ls reads.
        let start = Start::new(id, &["ls", "/proc/self/fd"])
            .stdin()
            .with("tty", tty);
        let log = client.run(start).await;
        let listed: Vec<_> = log.text().split_whitespace().map(str::to_owned).collect();
        assert_eq!(listed, ["0", "1", "2", "3"], "{id}");
    }
    client.terminate_and_wait("other").await;
    client.terminate_and_wait("another").await;
}

#[tokio::test]
async fn child_has_no_blocked_or_ignored_signals() {
    let (_server, client) = ready().await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = Start::new(id, &["grep", "^Sig[BI]", "/proc/self/status"]).with("tty", tty);
        let text = client.run(start).await.text().replace('\r', "");
        let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
        assert_eq!(text, expected, "{id}");
    }
}

#[tokio::test]
async fn ignored_signals_of_the_server_are_not_inherited() {
    // Ignored signals stay ignored across exec, and with SIGCHLD ignored the kernel keeps no exit
    // code.
    let server = crate::outpost()
        .after_shell("trap '' CHLD USR1 TERM PIPE")
        .start()
        .await;
    let client = server.client().await;
    let log = client
        .run(sh("p", "grep ^SigIgn /proc/self/status; exit 7"))
        .await;
    assert_eq!(log.text(), "SigIgn:\t0000000000000000\n");
    assert_eq!(log.code(), 7);
}
