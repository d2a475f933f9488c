//! Tests what the next server does with processes that a killed server left in a cgroup.

use std::path::PathBuf;

use outpost_testkit::{Server, Transport, deadline, sh};
use rustix::process::Signal;
use serde_json::json;

use crate::outpost;

/// A cgroup of this test, so that servers of other tests do not sweep it. Removed on drop.
struct TestCgroup(PathBuf);

impl TestCgroup {
    /// Returns `None` on hosts where no cgroup can be created.
    fn create() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let mount = mounts.find_map(|mut fields| {
            let path = fields.nth(1)?;
            (fields.next() == Some("cgroup2")).then(|| path.to_owned())
        })?;
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let name = format!("killed-server-test-{}", std::process::id());
        let path = PathBuf::from(mount).join(own).join(name);
        std::fs::create_dir(&path).ok()?;
        path.join("cgroup.kill").exists().then_some(Self(path))
    }

    async fn start_server(&self) -> Server {
        let prelude = format!("echo $$ > {}/cgroup.procs", self.0.display());
        let server = outpost().on(Transport::Unix).args(&["--trees", "cgroup"]);
        server.after_shell(&prelude).start().await
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test]
async fn next_server_ends_what_is_left_and_names_it() {
    let Some(cgroup) = TestCgroup::create() else {
        return;
    };
    let mut first = cgroup.start_server().await;
    let client = first.client().await;
    client.start(sh("p", "exec sleep 1234")).await;
    let pid = client.listed("p").await.expect("it runs")["pid"].clone();
    first.signal(Signal::KILL);
    first.wait().await;
    let left = first.tag().living();
    assert!(left.iter().any(|left| json!(left) == pid), "{left:?}");

    let second = cgroup.start_server().await;
    first.tag().gone().await;
    let owner = second.client().await;
    let list = owner.call("session/list", json!({})).await;
    assert_eq!(
        list["endedAtStart"],
        json!([{"pid": pid, "command": "sleep 1234"}])
    );
    deadline::poll_until("what was ended in the log", || {
        let log = second.stderr();
        log.contains("ended what a dead server left").then_some(())
    })
    .await;
    let on = format!("unix://{}", second.socket_path().display());
    let ps = outpost().run(&["ps", "--on", &on]).await;
    assert!(
        ps.stderr
            .contains(&format!("left process {pid} (sleep 1234)")),
        "{ps:?}"
    );
    drop((owner, second));
    drop(first);
}
