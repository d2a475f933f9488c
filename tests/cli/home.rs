//! The server that every user has.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use outpost_testkit::patience;

use super::home;

/// Those that were started as the server; it has keepers and processes beside it.
fn servers(living: &[i32]) -> Vec<i32> {
    let is_server = |pid: &&i32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(b"outpost\0serve\0"))
    };
    living.iter().filter(is_server).copied().collect()
}

#[tokio::test]
async fn commands_that_come_at_once_start_one_server() {
    let home = home();
    // One that somebody left makes it harder: each of them could remove it, and
    // with it the socket of the others.
    home.detach("true").await;
    home.stop().await;
    drop(UnixListener::bind(home.socket()).unwrap());
    let mut commands: Vec<_> = (0..6)
        .map(|_| home.watch(&["run", "--detach", "--", "sleep", "1000"]))
        .collect();
    for command in &mut commands {
        let ended = command.ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    }
    assert_eq!(servers(&home.mark().living()).len(), 1);
    let json = home.output(&["ps", "--json"]).await;
    assert_eq!(json.matches("\"running\"").count(), 6, "{json}");
    home.stop().await;
}

#[tokio::test]
async fn who_finds_the_lock_taken_waits_for_it() {
    let home = home();
    let folder = home.folder().join("outpost");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.join("server.lock");
    let lock = fs::File::create(&path).unwrap();
    lock.lock().unwrap();
    let mut commands: Vec<_> = (0..2)
        .map(|_| home.watch(&["run", "--detach", "--", "sleep", "1000"]))
        .collect();
    let waits = |pid: i32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let mut open = open
            .flatten()
            .filter_map(|fd| fs::read_link(fd.path()).ok());
        open.any(|file| file == path)
    };
    for command in &commands {
        let pid = command.pid();
        patience::seen("a command at the lock", || waits(pid).then_some(())).await;
    }
    assert!(servers(&home.mark().living()).is_empty());
    drop(lock);
    for command in &mut commands {
        assert_eq!(command.ended().await.code, Some(0));
    }
    assert_eq!(servers(&home.mark().living()).len(), 1);
    home.stop().await;
}

#[tokio::test]
async fn it_has_left_the_terminal_and_the_folder() {
    let home = home();
    home.detach("exec sleep 1000").await;
    let [server] = servers(&home.mark().living())[..] else {
        panic!("one server");
    };
    let stat = fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    assert_eq!(fields[3], server.to_string(), "a session of its own");
    assert_eq!(fields[4], "0", "no terminal");
    let name = fs::read_to_string(format!("/proc/{server}/comm")).unwrap();
    assert_eq!(name, "outpost\n", "as process lists show it");
    let link = |name: &str| fs::read_link(format!("/proc/{server}/{name}")).unwrap();
    assert_eq!(link("cwd").to_str(), Some("/"));
    assert_eq!(link("fd/0").to_str(), Some("/dev/null"));
    assert_eq!(link("fd/1").to_str(), Some("/dev/null"));
    assert_eq!(link("fd/2"), home.folder().join("outpost/server.log"));
    let mode = |path: &str| fs::metadata(home.folder().join(path)).unwrap().mode() & 0o777;
    assert_eq!(mode("outpost"), 0o700);
    assert_eq!(mode("outpost/server.sock"), 0o600);
    assert_eq!(mode("outpost/server.log"), 0o600);
    home.stop().await;
}

#[tokio::test]
async fn a_socket_that_was_left_behind_is_no_obstacle() {
    let home = home();
    let id = home.detach("true").await;
    home.stop().await;
    drop(UnixListener::bind(home.socket()).unwrap());
    let none = home.run(&["logs", &id]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("no server of this user is running"),
        "{none:?}"
    );
    home.detach("true").await;
    home.stop().await;
}

#[tokio::test]
async fn a_folder_that_is_open_to_others_is_refused() {
    let home = home();
    let folder = home.folder().join("outpost");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    for args in [
        &["run", "--detach", "--", "true"][..],
        &["ps"],
        &["logs", "x"],
        &["kill", "x"],
        &["stop"],
    ] {
        let refused = home.run(args).await;
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (Some(1), ""),
            "{args:?}"
        );
        assert!(
            refused.stderr.contains("is open to others (mode 755)"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn something_else_in_its_place_is_refused() {
    let home = home();
    fs::write(home.folder().join("outpost"), "").unwrap();
    let refused = home.run(&["run", "--detach", "--", "true"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("it is not a folder"), "{refused:?}");
}

#[tokio::test]
async fn when_it_can_not_be_started_its_last_words_are_told() {
    let home = home();
    fs::create_dir(home.folder().join("outpost")).unwrap();
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(home.folder().join("outpost"), closed).unwrap();
    // No socket can be put there.
    fs::create_dir(home.socket()).unwrap();
    let failed = home.run(&["run", "--detach", "--", "true"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(failed.stderr.contains("the end of its log"), "{failed:?}");
    assert!(
        failed
            .stderr
            .contains("the path exists and is not a socket"),
        "{failed:?}"
    );
}
