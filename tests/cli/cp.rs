//! `outpost cp`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use outpost_testkit::{Direction, Link, Mark, Transport, patience, sh};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::{command, ended, has_open, outcome, send, text};
use crate::{outpost, ready};

/// A folder with a tree in it, and what the tree holds.
fn tree() -> (TempDir, Vec<(&'static str, Vec<u8>)>) {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..1_500_000_u32)
        .map(|at| (at / 1000 % 251) as u8)
        .collect();
    let files = vec![
        ("t/a", b"first".to_vec()),
        ("t/d/empty", Vec::new()),
        ("t/d/e/large", large),
        ("t/näme with blanks", b"x".to_vec()),
    ];
    fs::create_dir_all(folder.path().join("t/d/e")).unwrap();
    for (name, bytes) in &files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    (folder, files)
}

pub(super) fn word(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| word(Path::new(&entry.unwrap().file_name())))
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
async fn a_tree_goes_to_a_server_and_comes_back_by_every_way() {
    let tcp = outpost().start().await;
    let unix = outpost().on(Transport::Unix).start().await;
    let binary = outpost();
    let binary = binary.binary().display();
    let launched = format!("stdio:'{binary}' serve --listen stdio://");
    for on in [tcp.urls()[0].as_str(), &unix.urls()[0], &launched] {
        let (folder, files) = tree();
        let at = |name: &str| word(&folder.path().join(name));
        let there = format!("{on}:{}", at("there"));
        let up = outcome(&["cp", "-r", &at("t"), &there], b"").await;
        assert_eq!(up.status.code(), Some(0), "{on}: {}", text(&up.stderr));
        assert!(
            text(&up.stderr).contains("copied 4 files, 1.4 MiB in "),
            "{}",
            text(&up.stderr)
        );
        let down = outcome(&["cp", "-rq", &there, &at("back")], b"").await;
        assert_eq!(down.status.code(), Some(0), "{on}: {}", text(&down.stderr));
        // A server that is launched has its log there.
        assert!(!text(&down.stderr).contains("copied"));
        for (name, bytes) in &files {
            let copy = name.replacen('t', "back", 1);
            assert!(
                fs::read(folder.path().join(copy)).unwrap() == *bytes,
                "{on}: {name}"
            );
        }
    }
}

#[tokio::test]
async fn both_sides_may_be_here_or_there() {
    let (one, two) = (outpost().start().await, outpost().start().await);
    let (folder, _) = tree();
    let at = |name: &str| word(&folder.path().join(name));
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
async fn what_a_copy_is_called_is_as_cp_has_it() {
    let server = outpost().start().await;
    let (folder, _) = tree();
    let at = |name: &str| word(&folder.path().join(name));
    let there = |name: &str| format!("{}:{}", server.urls()[0], at(name));
    fs::create_dir(at("dir")).unwrap();
    for (args, made) in [
        (vec![at("t/a"), there("dir")], "dir/a"),
        (vec![at("t/a"), there("dir/")], "dir/a"),
        (vec![at("t/a"), there("new")], "new"),
        (vec![at("t/a"), at("t/d/empty"), there("dir")], "dir/empty"),
        (vec!["-r".into(), at("t/d"), there("dir")], "dir/d/e/large"),
        (vec!["-r".into(), at("t/."), there("dir")], "dir/d/empty"),
        (
            vec!["-r".into(), there("t/d"), at("other/")],
            "other/e/large",
        ),
    ] {
        let copied = cp(&args).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert!(Path::new(&at(made)).exists(), "{args:?}");
    }
    fs::create_dir(at("u")).unwrap();
    fs::write(at("u/a"), "second").unwrap();
    for (args, words) in [
        (vec![at("t/a"), at("u/a"), there("dir")], "was just copied"),
        (vec![at("t/a"), there("none/")], "is not a directory"),
        (
            vec![at("t/a"), at("t/d/empty"), there("new")],
            "is not a directory",
        ),
        (vec![at("t/d"), there("more")], "is copied with -r"),
        (
            vec!["-r".into(), at("t/d"), there("new")],
            "can't be replaced by a directory",
        ),
        (vec![there("t/a"), there("t/../t/a")], "are the same file"),
        (vec!["-r".into(), there("t"), there("t/d/x")], "into itself"),
        (vec!["-r".into(), at("t"), at("t/d")], "into itself"),
        (
            vec![at("nothing"), there("x")],
            "No such file or directory (os error 2)",
        ),
        (
            vec![at("t/a"), there("none/x")],
            "No such file or directory (os error 2)",
        ),
    ] {
        let refused = cp(&args).await;
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(
            text(&refused.stderr).contains(words),
            "{}",
            text(&refused.stderr)
        );
    }
    assert!(!Path::new(&at("t/d/x")).exists());
    assert_eq!(fs::read(at("dir/a")).unwrap(), b"first");
}

#[tokio::test]
async fn our_own_input_and_output_are_files_too() {
    let server = outpost().start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = word(&folder.path().join("f"));
    let there = format!("{}:{path}", server.urls()[0]);
    let typed: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    let written = outcome(&["cp", "-", &there], &typed).await;
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    assert!(fs::read(&path).unwrap() == typed);
    let read = outcome(&["cp", &there, "-"], b"").await;
    assert_eq!(read.status.code(), Some(0));
    assert!(read.stdout == typed);
    assert_eq!(text(&read.stderr), "");
    assert_eq!(outcome(&["cp", "-", "-"], b"").await.status.code(), Some(2));
    let nameless = outcome(&["cp", "-", &word(folder.path())], b"").await;
    assert_eq!(nameless.status.code(), Some(1));
}

#[tokio::test]
async fn what_can_not_be_copied_is_told_and_the_rest_is_copied() {
    let server = outpost().start().await;
    for upload in [true, false] {
        let (folder, _) = tree();
        let at = |name: &str| word(&folder.path().join(name));
        symlink("a", at("t/link")).unwrap();
        symlink("..", at("t/d/up")).unwrap();
        symlink("nowhere", at("t/broken")).unwrap();
        let odd = OsStr::from_bytes(b"odd-\xff");
        fs::write(folder.path().join("t").join(odd), "x").unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(at("t/fifo"))
            .status();
        assert!(fifo.unwrap().success());
        let there = |name: &str| format!("{}:{}", server.urls()[0], at(name));
        let copied = match upload {
            true => outcome(&["cp", "-r", &at("t"), &there("copy")], b"").await,
            false => outcome(&["cp", "-r", &there("t"), &at("copy")], b"").await,
        };
        assert_eq!(copied.status.code(), Some(1));
        let said = text(&copied.stderr);
        for words in [
            "d/up\" is a link to a directory, and is not followed\n",
            "fifo\" is neither a file nor a directory\n",
            "\" has a name that is not UTF-8\n",
            "copied 5 files, 1.4 MiB in ",
            "; 3 not copied\n",
        ] {
            assert!(said.contains(words), "{words:?} is not in {said}");
        }
        assert_eq!(said.lines().count(), 4, "{said}");
        assert_eq!(fs::read(at("copy/link")).unwrap(), b"first");
        assert_eq!(
            names(Path::new(&at("copy"))),
            ["a", "d", "link", "näme with blanks"]
        );
    }
}

#[tokio::test]
async fn a_cut_costs_nothing_but_time() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let (folder, files) = tree();
    let at = |name: &str| word(&folder.path().join(name));
    let there = |name: &str| format!("{}:{}", link.url(), at(name));
    fs::create_dir(at("up")).unwrap();
    for (direction, args, made) in [
        (
            Direction::ToServer,
            [at("t/d/e/large"), there("up/f")],
            "up/f",
        ),
        (
            Direction::ToClient,
            [there("t/d/e/large"), at("down")],
            "down",
        ),
    ] {
        // Slow enough that it can't be over when it is cut.
        link.throttle(direction, 1_000_000);
        let child = command(&["cp", &args[0], &args[1]], server.mark()).spawn();
        let child = child.expect("it starts");
        let pid = server.pid();
        match direction {
            Direction::ToServer => has_open(pid, &folder.path().join("up")).await,
            Direction::ToClient => has_open(pid, &folder.path().join("t")).await,
        }
        link.cut().await;
        assert!(!Path::new(&at(made)).exists(), "half of it is there");
        link.open();
        let copied = ended(child).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert!(fs::read(at(made)).unwrap() == files[2].1);
    }
    assert_eq!(names(Path::new(&at("up"))), ["f"]);
}

#[tokio::test]
async fn an_interrupted_copy_leaves_the_old_file() {
    let server = outpost().start().await;
    for there in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let mark = Mark::new();
        let to = match there {
            true => format!("{}:{}", server.urls()[0], path.display()),
            false => word(&path),
        };
        let mut child = command(&["cp", "-", &to], &mark)
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("it was asked for");
        stdin.write_all(&vec![b'n'; 600_000]).await.unwrap();
        let writes = if there {
            server.pid()
        } else {
            i32::try_from(child.id().expect("it runs")).unwrap()
        };
        has_open(writes, folder.path()).await;
        send(&child, Signal::INT);
        assert_eq!(ended(child).await.status.code(), Some(130));
        patience::seen("the folder as it was", || {
            (names(folder.path()) == ["f"]).then_some(())
        })
        .await;
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(stdin);
        mark.gone().await;
    }
}

#[tokio::test]
async fn on_a_terminal_there_is_a_bar() {
    let (folder, _) = tree();
    let (server, client) = ready().await;
    let binary = outpost();
    let binary = word(binary.binary());
    let script = "mkfifo in; (cat in | $OUTPOST cp - $URL:$PWD/out; echo code $?) & \
                  exec 3>in; head -c 3000000 /dev/zero >&3; read line; exec 3>&-; wait";
    let start = sh("p", script)
        .tty()
        .cwd(folder.path())
        .env(&[
            ("OUTPOST", &binary),
            ("URL", &server.urls()[0]),
            ("PATH", "/usr/bin:/bin"),
        ])
        .with("size", json!({"rows": 30, "cols": 100}));
    client.start(start).await;
    client.sees("p", "MiB/s").await;
    client.write("p", b"\n", "w").await;
    let story = client.closed("p").await.text();
    assert!(story.contains("copied 1 file, 2.9 MiB in "), "{story}");
    assert!(story.contains("code 0"), "{story}");
}
