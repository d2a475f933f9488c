//! Tests `--on ssh://…` with a real sshd on loopback.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use outpost_testkit::{FaultyLink, ServerCommand, TestTag, TestUser, deadline};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use super::{command, finish, new_user};
use crate::outpost;

/// A host with an sshd that accepts one key, and a user who has that key.
struct SshHost {
    far: TestUser,
    near: TestUser,
    link: FaultyLink,
}

impl SshHost {
    async fn start() -> Self {
        let (far, near) = (new_user(), new_user());
        let port = start_sshd(&far, near.dir());
        let link = FaultyLink::to(&format!("127.0.0.1:{port}")).await;
        configure_ssh(near.dir());
        SshHost { far, near, link }
    }

    fn url(&self) -> String {
        let (_, port) = self.link.url().rsplit_once(':').unwrap();
        format!("ssh://tester@localhost:{port}")
    }

    /// A command of the user whose ssh has the key.
    fn command(&self) -> ServerCommand {
        self.near.command().env("PATH", &self.path())
    }

    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap();
        format!("{}/bin:{path}", self.near.dir().display())
    }

    async fn output(&self, args: &[&str]) -> String {
        let output = self.command().run(args).await;
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        output.stdout
    }
}

/// Accepts connections, each with its own sshd of this user, and returns the port.
fn start_sshd(far: &TestUser, near: &Path) -> u16 {
    let dir = far.dir().to_owned();
    for (path, name) in [(dir.as_path(), "host_key"), (near, "key")] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(path.join(name))
            .status();
        assert!(made.unwrap().success());
    }
    fs::copy(near.join("key.pub"), dir.join("authorized_keys")).unwrap();
    fs::create_dir(dir.join("bin")).unwrap();
    symlink(outpost().binary(), dir.join("bin/outpost")).unwrap();
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    // The shell of the user nobody rejects every command.
    let users = format!(
        "tester:*:{uid}:{gid}::{}/home:/bin/sh\nroot:*:0:0::/:/bin/sh\nsshd:*:65533:65534::/:/bin/false\n",
        dir.display()
    );
    fs::create_dir(dir.join("home")).unwrap();
    fs::write(dir.join("passwd"), users).unwrap();
    let shown = dir.display();
    let tag = format!("{}={}", TestTag::VARIABLE, far.tag().as_str());
    let config = format!(
        "HostKey {shown}/host_key\nAuthorizedKeysFile {shown}/authorized_keys\nStrictModes no\n\
         UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         SetEnv PATH={shown}/bin:/usr/bin:/bin XDG_RUNTIME_DIR={shown} OUTPOST_CONFIG=/dev/null {tag}\n"
    );
    fs::write(dir.join("sshd_config"), config).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tag = far.tag().as_str().to_owned();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = std::os::fd::OwnedFd::from(stream.unwrap());
            let mut sshd = Command::new("bwrap");
            sshd.args([
                "--dev-bind",
                "/",
                "/",
                "--tmpfs",
                "/run",
                "--dir",
                "/run/sshd",
            ])
            .arg("--ro-bind")
            .args([&dir.join("passwd"), Path::new("/etc/passwd")])
            .args(["--", "/usr/sbin/sshd", "-i", "-e", "-f"])
            .arg(dir.join("sshd_config"))
            .env(TestTag::VARIABLE, &tag)
            .stdin(Stdio::from(stream.try_clone().unwrap()))
            .stdout(Stdio::from(stream))
            .stderr(
                fs::File::options()
                    .create(true)
                    .append(true)
                    .open(dir.join("sshd.log"))
                    .unwrap(),
            );
            let mut sshd = sshd.spawn().unwrap();
            thread::spawn(move || sshd.wait());
        }
    });
    port
}

/// Makes an ssh that uses the key, and nothing of the user who runs the tests.
fn configure_ssh(near: &Path) {
    let shown = near.display();
    let config = format!(
        "IdentityFile {shown}/key\nIdentitiesOnly yes\nBatchMode yes\nStrictHostKeyChecking no\n\
         UserKnownHostsFile {shown}/known_hosts\nLogLevel ERROR\n"
    );
    fs::write(near.join("ssh_config"), config).unwrap();
    fs::create_dir(near.join("bin")).unwrap();
    let ssh = near.join("bin/ssh");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {shown}/connections\nexec /usr/bin/ssh -F {shown}/ssh_config \"$@\"\n"
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn command_continues_after_the_link_was_cut() {
    let host = SshHost::start().await;
    let url = host.url();
    let go = host.near.dir().join("go");
    let script = format!(
        "echo one; while ! test -e {}; do sleep 0.05; done; echo two; exit 7",
        go.display()
    );
    let args = ["run", "--on", &url, "--", "sh", "-c", &script];
    let mut running = command(&args, host.near.tag());
    let mut running = running.env("PATH", host.path()).spawn().unwrap();
    let mut stdout = BufReader::new(running.stdout.take().unwrap());
    let mut printed = String::new();
    deadline::expect_soon("output", stdout.read_line(&mut printed))
        .await
        .unwrap();
    host.link.cut().await;
    fs::write(&go, "").unwrap();
    deadline::expect_soon("the rest", stdout.read_to_string(&mut printed))
        .await
        .unwrap();
    let output = finish(running).await;
    assert_eq!(printed, "one\ntwo\n", "{output:?}");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let connections = fs::read_to_string(host.near.dir().join("connections")).unwrap();
    let asks_nothing = |arguments: &str| arguments.contains("-oBatchMode=yes");
    let (first, reconnects) = connections.split_once('\n').unwrap();
    assert!(!asks_nothing(first), "{connections}");
    assert!(
        !reconnects.is_empty() && reconnects.lines().all(asks_nothing),
        "{connections}"
    );
    host.far.stop().await;
}

#[tokio::test]
async fn detached_work_survives_the_link() {
    let host = SshHost::start().await;
    let url = host.url();
    let script = "echo started; exec sleep 600";
    let args = ["run", "--detach", "--on", &url, "--", "sh", "-c", script];
    let id = host.output(&args).await;
    let id = id.trim();
    host.link.cut().await;
    let listed = host.output(&["ps", "--on", &url]).await;
    assert!(
        listed.contains(id) && listed.contains("running"),
        "{listed}"
    );
    assert_eq!(host.output(&["logs", "--on", &url, id]).await, "started\n");
    let far = host.far.output(&["ps"]).await;
    assert!(far.contains(id), "it is on the user's server there: {far}");
    let killed = host.output(&["kill", "--on", &url, id]).await;
    assert!(killed.contains("has ended with 143"), "{killed}");
    // Files go the same way.
    let file = host.far.dir().join("passwd").display().to_string();
    let printed = host.output(&["cat", &format!("{url}:{file}")]).await;
    assert!(printed.starts_with("tester:"), "{printed}");
    host.far.stop().await;
}

#[tokio::test]
async fn commands_and_paths_start_in_the_home_directory() {
    let host = SshHost::start().await;
    let url = host.url();
    let home = fs::canonicalize(host.far.dir().join("home")).unwrap();
    fs::write(home.join("file"), "text").unwrap();
    let pwd = host.output(&["run", "--on", &url, "--", "pwd", "-P"]).await;
    assert_eq!(pwd.trim_end(), home.display().to_string());
    assert_eq!(host.output(&["cat", &format!("{url}:file")]).await, "text");
    host.far.stop().await;
}

#[tokio::test]
async fn failed_login_is_explained() {
    let host = SshHost::start().await;
    fs::write(host.far.dir().join("authorized_keys"), "").unwrap();
    let args = ["run", "--on", &host.url(), "--", "true"];
    let output = host.command().run(&args).await;
    assert_eq!(output.code, Some(255), "{output:?}");
    for part in [
        "Permission denied",
        "the command that connects to the server ended with exit status: 255",
    ] {
        assert!(output.stderr.contains(part), "{output:?}");
    }
    let option = host
        .command()
        .run(&["run", "--on", "ssh://-oProxyCommand=x", "--", "true"])
        .await;
    assert!(
        option.stderr.contains("expected ssh://[USER@]HOST[:PORT]"),
        "{option:?}"
    );
}
