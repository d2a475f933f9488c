//! Which program runs, as what, and what happens when it can't.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Start, patience, sh};
use serde_json::json;

use crate::{outpost, ready};

/// A file that says its name when it is run.
fn program(folder: &Path, name: &str) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\necho I am {name}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn a_name_is_looked_up_in_the_path_of_the_child() {
    let (server, client) = ready().await;
    let folder = server.folder().join("bin");
    program(&folder, "only-here");
    let path = format!("/nowhere:{}:/bin", folder.display());
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = Start::new(id, &["only-here"])
            .env(&[("PATH", &path)])
            .with("tty", tty);
        let story = client.run(start).await;
        assert_eq!(story.text().trim_end(), "I am only-here");
    }
}

#[tokio::test]
async fn a_name_is_not_looked_up_in_the_path_of_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    program(folder.path(), "only-there");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
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
async fn a_child_without_a_path_has_the_default_one() {
    let folder = tempfile::tempdir().expect("a folder");
    program(folder.path(), "true");
    let server = outpost().env("PATH", text(folder.path())).start().await;
    let client = server.client().await;
    let story = client.run(Start::new("p", &["true"]).env(&[])).await;
    assert_eq!((story.text().as_str(), story.code()), ("", 0));
    let story = client
        .run(Start::new("q", &["env"]).env(&[("ONLY", "this")]))
        .await;
    assert_eq!(
        story.text(),
        "ONLY=this\n",
        "nothing is added for the lookup"
    );
}

#[tokio::test]
async fn a_name_with_a_slash_is_a_path_from_the_working_directory() {
    let (server, client) = ready().await;
    program(&server.folder().join("sub"), "tool");
    let start = Start::new("p", &["sub/tool"]).cwd(server.folder());
    assert_eq!(client.run(start).await.text(), "I am tool\n");
    let start = Start::new("q", &["./tool"]).cwd(&server.folder().join("sub"));
    assert_eq!(client.run(start).await.text(), "I am tool\n");
}

/// It can't be started, neither on pipes nor on a PTY, and leaves nothing behind.
async fn cannot_run(client: &Client, start: Start, words: &str) {
    for tty in [false, true] {
        let error = client.start_fails(start.clone().with("tty", tty)).await;
        assert_eq!(error.code, -32603, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
        let error = client
            .fails("process/read", json!({"processId": "bad"}))
            .await;
        assert_eq!(error.parts(), (-32600, "unknown process id bad"));
        assert_eq!(client.listed("bad").await, None);
        assert!(client.story("bad").events.is_empty());
    }
}

#[tokio::test]
async fn what_cannot_be_executed_is_an_error_with_the_words_of_the_system() {
    let (server, client) = ready().await;
    let folder = server.folder();
    let plain = folder.join("plain");
    fs::write(&plain, "echo no\n").expect("a file");
    let garbage = program(folder, "garbage");
    fs::write(&garbage, [0x7f, 0, 1, 2, 3, 0xff, 0xfe]).expect("a file");
    let lost = program(folder, "lost");
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
        (vec![text(folder)], "Permission denied (os error 13)"),
        (vec![text(&garbage)], "Exec format error (os error 8)"),
        (vec![text(&lost)], "No such file or directory (os error 2)"),
        (vec!["/etc/passwd/x"], "Not a directory (os error 20)"),
    ];
    for (argv, words) in cases {
        cannot_run(&client, Start::new("bad", &argv), words).await;
    }
    let huge = "x".repeat(256 * 1024);
    let too_long = "Argument list too long (os error 7)";
    cannot_run(&client, Start::new("bad", &["true", &huge]), too_long).await;
    let missing = Start::new("bad", &["true"]).with("cwd", "file:///no/such/folder");
    cannot_run(&client, missing, "No such file or directory (os error 2)").await;
    let file = Start::new("bad", &["true"]).with("cwd", "file:///etc/passwd");
    cannot_run(&client, file, "Not a directory (os error 20)").await;
    // The id was never taken.
    assert_eq!(client.run(Start::new("bad", &["true"])).await.code(), 0);
}

#[tokio::test]
async fn a_nul_byte_is_refused_wherever_it_is() {
    let (_server, client) = ready().await;
    let refused = [
        Start::new("bad", &["true", "a\0b"]),
        Start::new("bad", &["tr\0ue"]),
        Start::new("bad", &["true"]).with("arg0", "a\0b"),
        Start::new("bad", &["true"]).env(&[("A", "b\0c")]),
        Start::new("bad", &["true"]).env(&[("A\0B", "c")]),
    ];
    for start in refused {
        let error = client.start_fails(start).await;
        assert!(matches!(error.code, -32602 | -32603), "{error:?}");
        assert_eq!(client.listed("bad").await, None);
    }
}

#[tokio::test]
async fn failed_starts_leave_no_descriptors_and_no_children() {
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
    let before = server.vitals();
    let (files, children) = (before.open_files(), before.children().len());
    for _ in 0..50 {
        fail().await;
    }
    patience::seen("the end of all descriptors and children", || {
        let vitals = server.vitals();
        // A server may keep a few in stock.
        let few = vitals.open_files() <= files + 8 && vitals.children().len() <= children + 4;
        (few && vitals.zombies().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_child_leads_its_own_process_group() {
    let (_server, client) = ready().await;
    // Pid, group and session are the first, fifth and sixth field of its stat.
    let script = "cut -d' ' -f1,5,6 /proc/$$/stat";
    let story = client.run(sh("pipes", script)).await;
    let fields: Vec<_> = story.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(fields[0], fields[1], "{fields:?}");
    let story = client.run(sh("pty", script).tty()).await;
    let fields: Vec<_> = story.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(
        (&fields[0], &fields[0]),
        (&fields[1], &fields[2]),
        "{fields:?}"
    );
}

#[tokio::test]
async fn a_child_inherits_no_descriptors() {
    let (_server, client) = ready().await;
    // Some to inherit: other children's pipes, and the server's own sockets.
    client.start(sh("other", "read x").stdin()).await;
    client.start(sh("another", "read x").tty()).await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        // The folder that ls reads is its own fourth.
        let start = Start::new(id, &["ls", "/proc/self/fd"])
            .stdin()
            .with("tty", tty);
        let story = client.run(start).await;
        let listed: Vec<_> = story.text().split_whitespace().map(str::to_owned).collect();
        assert_eq!(listed, ["0", "1", "2", "3"], "{id}");
    }
    client.end("other").await;
    client.end("another").await;
}

#[tokio::test]
async fn a_child_has_no_signal_blocked_or_ignored() {
    let (_server, client) = ready().await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = Start::new(id, &["grep", "^Sig[BI]", "/proc/self/status"]).with("tty", tty);
        let text = client.run(start).await.text().replace('\r', "");
        let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
        assert_eq!(text, expected, "{id}");
    }
}

#[tokio::test]
async fn what_the_servers_starter_ignores_is_neither_lost_nor_passed_on() {
    // What is ignored stays so over an exec, and ignored children leave no exit code behind.
    let server = crate::outpost()
        .after("trap '' CHLD USR1 TERM PIPE")
        .start()
        .await;
    let client = server.client().await;
    let story = client
        .run(sh("p", "grep ^SigIgn /proc/self/status; exit 7"))
        .await;
    assert_eq!(story.text(), "SigIgn:\t0000000000000000\n");
    assert_eq!(story.code(), 7);
}
