//! Tests `outpost cp`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use outpost_testkit::{Direction, FaultyLink, TestTag, Transport, deadline, sh};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::{OpenWatch, command, finish, outcome, send, text};
use crate::{outpost, ready_with};

/// Creates a directory tree and returns it with its expected files.
fn tree() -> (TempDir, Vec<(&'static str, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..1_500_000_u32)
        .map(|at| (at / 1000 % 251) as u8)
        .collect();
    let files = vec![
        ("t/a", b"first".to_vec()),
        ("t/d/empty", Vec::new()),
        ("t/d/e/large", large),
        ("t/näme with blanks", b"x".to_vec()),
    ];
    fs::create_dir_all(dir.path().join("t/d/e")).unwrap();
    for (name, bytes) in &files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    (dir, files)
}

pub(super) fn path_text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| path_text(Path::new(&entry.unwrap().file_name())))
        .collect();
    names.sort();
    names
}

pub(super) async fn cp(args: &[String]) -> Output {
    let args = args.iter().map(String::as_str);
    let args: Vec<_> = ["cp"].into_iter().chain(args).collect();
    outcome(&args, b"").await
}

#[tokio::test]
async fn tree_round_trips_over_every_transport() {
    let tcp = outpost().start().await;
    let unix = outpost().on(Transport::Unix).start().await;
    let binary = outpost();
    let binary = binary.binary().display();
    let launched = format!("stdio:'{binary}' serve --listen stdio://");
    for on in [tcp.urls()[0].as_str(), &unix.urls()[0], &launched] {
        let (dir, files) = tree();
        let at = |name: &str| path_text(&dir.path().join(name));
        let remote_path = format!("{on}:{}", at("there"));
        let up = outcome(&["cp", "-r", &at("t"), &remote_path], b"").await;
        assert_eq!(up.status.code(), Some(0), "{on}: {}", text(&up.stderr));
        assert!(
            text(&up.stderr).contains("copied 4 files, 1.4 MiB in "),
            "{}",
            text(&up.stderr)
        );
        let down = outcome(&["cp", "-rq", &remote_path, &at("back")], b"").await;
        assert_eq!(down.status.code(), Some(0), "{on}: {}", text(&down.stderr));
        // stderr isn't empty: a launched server logs there.
        assert!(!text(&down.stderr).contains("copied"));
        for (name, bytes) in &files {
            let copy = name.replacen('t', "back", 1);
            assert!(
                fs::read(dir.path().join(copy)).unwrap() == *bytes,
                "{on}: {name}"
            );
        }
    }
}

#[tokio::test]
async fn either_side_may_be_local_or_remote() {
    let (one, two) = (outpost().start().await, outpost().start().await);
    let (dir, _) = tree();
    let at = |name: &str| path_text(&dir.path().join(name));
    let from = format!("{}:{}", one.urls()[0], at("t/a"));
    let to = format!("{}:{}", two.urls()[0], at("there"));
    let named = format!(":{}", at("t/a"));
    for (args, made) in [
        (vec![from, to], "there"),
        (vec![at("t/a"), at("here")], "here"),
        (
            vec!["--on".into(), one.urls()[0].clone(), named, at("on")],
            "on",
        ),
    ] {
        let copied = cp(&args).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert_eq!(fs::read(at(made)).unwrap(), b"first");
    }
}

#[tokio::test]
async fn copies_are_named_like_cp_names_them() {
    let server = outpost().start().await;
    let (dir, _) = tree();
    let at = |name: &str| path_text(&dir.path().join(name));
    let remote_path = |name: &str| format!("{}:{}", server.urls()[0], at(name));
    fs::create_dir(at("dir")).unwrap();
    for (args, made) in [
        (vec![at("t/a"), remote_path("dir")], "dir/a"),
        (vec![at("t/a"), remote_path("dir/")], "dir/a"),
        (vec![at("t/a"), remote_path("new")], "new"),
        (
            vec![at("t/a"), at("t/d/empty"), remote_path("dir")],
            "dir/empty",
        ),
        (
            vec!["-r".into(), at("t/d"), remote_path("dir")],
            "dir/d/e/large",
        ),
        (
            vec!["-r".into(), at("t/."), remote_path("dir")],
            "dir/d/empty",
        ),
        (
            vec!["-r".into(), remote_path("t/d"), at("other/")],
            "other/e/large",
        ),
    ] {
        let copied = cp(&args).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert!(Path::new(&at(made)).exists(), "{args:?}");
    }
    fs::create_dir(at("u")).unwrap();
    fs::write(at("u/a"), "second").unwrap();
    for (args, message) in [
        (
            vec![at("t/a"), at("u/a"), remote_path("dir")],
            "was just created from",
        ),
        (vec![at("t/a"), remote_path("none/")], "is not a directory"),
        (
            vec![at("t/a"), at("t/d/empty"), remote_path("new")],
            "is not a directory",
        ),
        (vec![at("t/d"), remote_path("more")], "use -r to copy it"),
        (
            vec!["-r".into(), at("t/d"), remote_path("new")],
            "can't be replaced by a directory",
        ),
        (
            vec![remote_path("t/a"), remote_path("t/../t/a")],
            "are the same file",
        ),
        (
            vec!["-r".into(), remote_path("t"), remote_path("t/d/x")],
            "into itself",
        ),
        (vec!["-r".into(), at("t"), at("t/d")], "into itself"),
        (
            vec![at("nothing"), remote_path("x")],
            "No such file or directory (os error 2)",
        ),
        (
            vec![at("t/a"), remote_path("none/x")],
            "No such file or directory (os error 2)",
        ),
    ] {
        let rejected = cp(&args).await;
        assert_eq!(rejected.status.code(), Some(1), "{args:?}");
        assert!(
            text(&rejected.stderr).contains(message),
            "{}",
            text(&rejected.stderr)
        );
    }
    assert!(!Path::new(&at("t/d/x")).exists());
    assert_eq!(fs::read(at("dir/a")).unwrap(), b"first");
}

#[tokio::test]
async fn stdin_and_stdout_can_be_copied() {
    let server = outpost().start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = path_text(&dir.path().join("f"));
    let remote_path = format!("{}:{path}", server.urls()[0]);
    let typed: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    let written = outcome(&["cp", "-", &remote_path], &typed).await;
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    assert!(fs::read(&path).unwrap() == typed);
    let read = outcome(&["cp", &remote_path, "-"], b"").await;
    assert_eq!(read.status.code(), Some(0));
    assert!(read.stdout == typed);
    assert_eq!(text(&read.stderr), "");
    assert_eq!(outcome(&["cp", "-", "-"], b"").await.status.code(), Some(2));
    let output = outcome(&["cp", "-", &path_text(dir.path())], b"").await;
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test]
async fn skipped_files_are_reported_and_the_rest_is_copied() {
    let server = outpost().start().await;
    for upload in [true, false] {
        let (dir, _) = tree();
        let at = |name: &str| path_text(&dir.path().join(name));
        symlink("a", at("t/link")).unwrap();
        symlink("..", at("t/d/up")).unwrap();
        symlink("nowhere", at("t/broken")).unwrap();
        let special_name = OsStr::from_bytes(b"odd-\xff");
        fs::write(dir.path().join("t").join(special_name), "x").unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(at("t/fifo"))
            .status();
        assert!(fifo.unwrap().success());
        let remote_path = |name: &str| format!("{}:{}", server.urls()[0], at(name));
        let copied = match upload {
            true => outcome(&["cp", "-r", &at("t"), &remote_path("copy")], b"").await,
            false => outcome(&["cp", "-r", &remote_path("t"), &at("copy")], b"").await,
        };
        assert_eq!(copied.status.code(), Some(1));
        let printed = text(&copied.stderr);
        for message in [
            "d/up\" is a link to a directory, which is not followed\n",
            "fifo\" is neither a file nor a directory\n",
            "\" has a name that is not UTF-8\n",
            "copied 5 files, 1.4 MiB in ",
            "; 3 not copied\n",
        ] {
            assert!(printed.contains(message), "{message:?} is not in {printed}");
        }
        assert_eq!(printed.lines().count(), 4, "{printed}");
        assert_eq!(fs::read(at("copy/link")).unwrap(), b"first");
        assert_eq!(
            names(Path::new(&at("copy"))),
            ["a", "d", "link", "näme with blanks"]
        );
    }
}

#[tokio::test]
async fn cut_connection_does_not_corrupt_a_copy() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let (dir, files) = tree();
    let at = |name: &str| path_text(&dir.path().join(name));
    let remote_path = |name: &str| format!("{}:{}", link.url(), at(name));
    fs::create_dir(at("up")).unwrap();
    for (direction, args, made) in [
        (
            Direction::ToServer,
            [at("t/d/e/large"), remote_path("up/f")],
            "up/f",
        ),
        (
            Direction::ToClient,
            [remote_path("t/d/e/large"), at("down")],
            "down",
        ),
    ] {
        // Throttled so that the copy can't finish before the cut.
        link.throttle(direction, 1_000_000);
        let watch = match direction {
            Direction::ToServer => OpenWatch::new(&dir.path().join("up")),
            Direction::ToClient => OpenWatch::new(&dir.path().join("t/d/e/large")),
        };
        let child = command(&["cp", &args[0], &args[1]], server.tag()).spawn();
        let child = child.expect("spawn");
        watch.opened().await;
        link.cut().await;
        assert!(!Path::new(&at(made)).exists(), "a partial file exists");
        link.open();
        let copied = finish(child).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert!(fs::read(at(made)).unwrap() == files[2].1);
    }
    assert_eq!(names(Path::new(&at("up"))), ["f"]);
}

#[tokio::test]
async fn interrupted_copy_leaves_the_old_file() {
    let server = outpost().start().await;
    for to_server in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let tag = TestTag::new();
        let to = match to_server {
            true => format!("{}:{}", server.urls()[0], path.display()),
            false => path_text(&path),
        };
        let watch = OpenWatch::new(dir.path());
        let mut child = command(&["cp", "-", &to], &tag).spawn().expect("spawn");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(&vec![b'n'; 600_000]).await.unwrap();
        watch.opened().await;
        send(&child, Signal::INT);
        assert_eq!(finish(child).await.status.code(), Some(130));
        deadline::poll_until("the unchanged directory", || {
            (names(dir.path()) == ["f"]).then_some(())
        })
        .await;
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(stdin);
        tag.gone().await;
    }
}

#[tokio::test]
async fn terminal_shows_a_progress_bar() {
    let (dir, _) = tree();
    // The command is a process of the server itself.
    let (server, client) = ready_with(&["--allow-local-users"]).await;
    let binary = outpost();
    let binary = path_text(binary.binary());
    let script = "mkfifo in; (cat in | $OUTPOST cp - $URL:$PWD/out; echo code $?) & \
                  exec 3>in; head -c 3000000 /dev/zero >&3; read line; exec 3>&-; wait";
    let start = sh("p", script)
        .tty()
        .cwd(dir.path())
        .env(&[
            ("OUTPOST", &binary),
            ("URL", &server.urls()[0]),
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm"),
        ])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    client.wait_output("p", "MiB/s").await;
    client.write("p", b"\n", "w").await;
    let log = client.closed("p").await.text();
    assert!(log.contains("copied 1 file, 2.9 MiB in "), "{log}");
    assert!(log.contains("code 0"), "{log}");
}
