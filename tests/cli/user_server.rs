//! Tests the server that each user has.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use outpost_testkit::deadline;

use super::new_user;

/// Selects the server processes, without subreapers and commands.
fn servers(living: &[i32]) -> Vec<i32> {
    let is_server = |pid: &&i32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(b"outpost\0serve\0"))
    };
    living.iter().filter(is_server).copied().collect()
}

#[tokio::test]
async fn concurrent_commands_start_one_server() {
    let user = new_user();
    // A stale socket is the hard case: each command may remove it, and with it the new socket of
    // another one.
    user.detach("true").await;
    user.stop().await;
    drop(UnixListener::bind(user.socket()).unwrap());
    let mut commands: Vec<_> = (0..6)
        .map(|_| user.spawn(&["run", "--detach", "--", "sleep", "1000"]))
        .collect();
    for command in &mut commands {
        let output = command.wait().await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    }
    assert_eq!(servers(&user.tag().living()).len(), 1);
    let json = user.output(&["ps", "--json"]).await;
    assert_eq!(json.matches("\"running\"").count(), 6, "{json}");
    user.stop().await;
}

#[tokio::test]
async fn held_lock_is_waited_for() {
    let user = new_user();
    let dir = user.dir().join("outpost");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let path = dir.join("server.lock");
    let lock = fs::File::create(&path).unwrap();
    lock.lock().unwrap();
    let mut commands: Vec<_> = (0..2)
        .map(|_| user.spawn(&["run", "--detach", "--", "sleep", "1000"]))
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
        deadline::poll_until("a command waiting for the lock", || {
            waits(pid).then_some(())
        })
        .await;
    }
    assert!(servers(&user.tag().living()).is_empty());
    drop(lock);
    for command in &mut commands {
        assert_eq!(command.wait().await.code, Some(0));
    }
    assert_eq!(servers(&user.tag().living()).len(), 1);
    user.stop().await;
}

#[tokio::test]
async fn server_leaves_terminal_and_working_directory() {
    let user = new_user();
    let home = fs::canonicalize(user.dir()).unwrap();
    let command = user.command().env("HOME", home.to_str().unwrap());
    let detached = command.run(&["run", "-d", "--", "sleep", "1000"]).await;
    assert_eq!(detached.code, Some(0), "{detached:?}");
    let [server] = servers(&user.tag().living())[..] else {
        panic!("one server");
    };
    let stat = fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let fields: Vec<_> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    assert_eq!(fields[3], server.to_string(), "its own session");
    assert_eq!(fields[4], "0", "no terminal");
    let name = fs::read_to_string(format!("/proc/{server}/comm")).unwrap();
    assert_eq!(name, "outpost\n", "as process lists show it");
    let link = |name: &str| fs::read_link(format!("/proc/{server}/{name}"));
    if rustix::process::geteuid().is_root() {
        assert_eq!(link("cwd").unwrap(), home);
        assert_eq!(link("fd/0").unwrap().to_str(), Some("/dev/null"));
        assert_eq!(link("fd/1").unwrap().to_str(), Some("/dev/null"));
        let log = user.dir().join("outpost/server.log");
        assert_eq!(link("fd/2").unwrap(), log);
    } else {
        // Other processes of the user can't look into the server.
        let error = link("cwd").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }
    let mode = |path: &str| fs::metadata(user.dir().join(path)).unwrap().mode() & 0o777;
    assert_eq!(mode("outpost"), 0o700);
    assert_eq!(mode("outpost/server.sock"), 0o600);
    assert_eq!(mode("outpost/server.log"), 0o600);
    user.stop().await;
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let user = new_user();
    let id = user.detach("true").await;
    user.stop().await;
    drop(UnixListener::bind(user.socket()).unwrap());
    let none = user.run(&["logs", &id]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("your server is not running"),
        "{none:?}"
    );
    user.detach("true").await;
    user.stop().await;
}

#[tokio::test]
async fn server_is_reached_after_its_directory_was_removed() {
    let user = new_user();
    let id = user.detach("exec sleep 1000").await;
    let dir = user.dir().join("outpost");
    fs::remove_dir_all(&dir).unwrap();
    let listed = user.output(&["ps"]).await;
    assert!(listed.contains(&format!("{id}  running")), "{listed}");
    let mode = fs::metadata(&dir).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);

    // Neither is another server started.
    fs::remove_file(user.socket()).unwrap();
    let second = user.detach("exec sleep 1000").await;
    assert_eq!(servers(&user.tag().living()).len(), 1);

    fs::remove_dir_all(&dir).unwrap();
    let stopped = user.stop().await;
    for id in [id, second] {
        assert!(stopped.contains(&format!("ended {id}")), "{stopped}");
    }
    user.tag().gone().await;
}

#[tokio::test]
async fn server_out_of_reach_is_reported() {
    let user = new_user();
    user.detach("exec sleep 1000").await;
    let [server] = servers(&user.tag().living())[..] else {
        panic!("one server");
    };
    fs::remove_file(user.socket()).unwrap();
    // The server can't bind its socket here.
    fs::create_dir(user.socket()).unwrap();
    let commands = [&["ps"][..], &["stop"], &["run", "-d", "true"]];
    let mut commands = commands.map(|args| user.spawn(args));
    for command in &mut commands {
        let output = command.wait().await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
        let message = format!("your server is running as process {server}, ");
        assert!(output.stderr.contains(&message), "{output:?}");
    }
    fs::remove_dir(user.socket()).unwrap();
    user.stop().await;
}

#[tokio::test]
async fn directory_open_to_others_is_rejected() {
    let user = new_user();
    let dir = user.dir().join("outpost");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    for args in [
        &["run", "--detach", "--", "true"][..],
        &["ps"],
        &["logs", "x"],
        &["kill", "x"],
        &["stop"],
    ] {
        let rejected = user.run(args).await;
        assert_eq!(
            (rejected.code, rejected.stdout.as_str()),
            (Some(1), ""),
            "{args:?}"
        );
        assert!(
            rejected
                .stderr
                .contains("other users have access (mode 755)"),
            "{rejected:?}"
        );
    }
}

#[tokio::test]
async fn other_file_at_the_path_is_rejected() {
    let user = new_user();
    fs::write(user.dir().join("outpost"), "").unwrap();
    let rejected = user.run(&["run", "--detach", "--", "true"]).await;
    assert_eq!(rejected.code, Some(1));
    assert!(
        rejected.stderr.contains("it is not a directory"),
        "{rejected:?}"
    );
}

#[tokio::test]
async fn start_failure_shows_the_servers_last_log_lines() {
    let user = new_user();
    fs::create_dir(user.dir().join("outpost")).unwrap();
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(user.dir().join("outpost"), closed).unwrap();
    // A directory in place of the socket makes bind fail.
    fs::create_dir(user.socket()).unwrap();
    let failed = user.run(&["run", "--detach", "--", "true"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(failed.stderr.contains("the end of its log"), "{failed:?}");
    assert!(
        failed
            .stderr
            .contains("the path exists and is not a socket"),
        "{failed:?}"
    );
}
