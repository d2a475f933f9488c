//! Tests `limits`. Where the host enforces a limit, it holds; elsewhere the start is refused.

use std::path::PathBuf;

use outpost_testkit::{Client, Server, Start, sh};
use rustix::fs::{Mode, OFlags, XattrFlags};
use serde_json::{Value, json};

use super::exit;
use crate::{outpost, ready, ready_with};

/// The limits that need a cgroup, and their controllers.
const IN_CGROUP: [(&str, &str); 4] = [
    ("memoryBytes", "memory"),
    ("swapBytes", "memory"),
    ("cpus", "cpu"),
    ("processes", "pids"),
];

/// A cgroup below that of the test, marked as delegated. `None` if the test can create none.
struct DelegatedCgroup(Option<PathBuf>);

impl DelegatedCgroup {
    fn create() -> Self {
        Self(Self::try_create())
    }

    fn try_create() -> Option<PathBuf> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let has_controllers = |root: &&PathBuf| root.join("cgroup.controllers").exists();
        let root = roots.iter().find(has_controllers)?;
        let name = format!("outpost.test-{}", unique_name());
        let path = root.join(own).join(name);
        std::fs::create_dir(&path).ok()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = rustix::fs::open(&path, flags, Mode::empty()).ok()?;
        let mark = (c"user.delegate", b"1", XattrFlags::empty());
        rustix::fs::fsetxattr(&directory, mark.0, mark.1, mark.2).ok()?;
        Some(path)
    }

    /// Starts a server in it.
    async fn server(&self, args: &[&str]) -> Server {
        let command = outpost().args(args);
        let Some(path) = &self.0 else {
            return command.start().await;
        };
        let enter = format!("echo $$ > {}/cgroup.procs", path.display());
        command.after_shell(&enter).start().await
    }

    /// Whether this controller has to work below it.
    fn has(&self, controller: &str) -> bool {
        let file = self.0.as_ref().map(|path| path.join("cgroup.controllers"));
        let controllers = file.and_then(|file| std::fs::read_to_string(file).ok());
        let controllers = controllers.unwrap_or_default();
        controllers
            .split_whitespace()
            .any(|name| name == controller)
    }
}

impl Drop for DelegatedCgroup {
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        // The server and its processes are gone or about to be; then only empty directories are left.
        let _ = std::fs::write(path.join("cgroup.kill"), "1");
        for _ in 0..500 {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                for nested in std::fs::read_dir(entry.path())
                    .into_iter()
                    .flatten()
                    .flatten()
                {
                    let _ = rustix::fs::rmdir(nested.path());
                }
                let _ = rustix::fs::rmdir(entry.path());
            }
            if rustix::fs::rmdir(path).is_ok() {
                return;
            }
            // sleep: the kernel sends no notification when a cgroup can be removed
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A name that no other test has.
fn unique_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

/// Checks that a start is refused because of this limit, and that nothing runs.
async fn check_refused(client: &Client, start: Start, limit: &str) {
    let id = start.id().to_owned();
    let error = client.start_fails(start).await;
    assert_eq!(error.code, -32602);
    let message = format!("limit cannot be enforced on this executor: {limit}: ");
    assert!(error.message.starts_with(&message), "{}", error.message);
    assert!(error.message.contains("Delegate=yes"), "{}", error.message);
    assert_eq!(client.listed(&id).await, None);
}

/// The limits that a server says it can enforce.
async fn enforceable(client: &Client) -> Vec<String> {
    let info = client.call("environment/info", json!({})).await;
    let names = info["limits"]["enforceable"].as_array().expect("a list");
    let names = names.iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Runs a test with a server in a cgroup that was delegated to it, once the server says that it can
/// enforce this limit. Where it cannot, checks that it refuses the limit.
pub(crate) async fn with_limit(limit: &str, test: impl AsyncFn(&Server, &Client)) {
    let cgroup = DelegatedCgroup::create();
    let server = cgroup.server(&[]).await;
    let client = server.client().await;
    let says = enforceable(&client).await.iter().any(|name| name == limit);
    let controller = IN_CGROUP.iter().find(|(name, _)| *name == limit);
    let has = cgroup.has(controller.expect("it needs a cgroup").1);
    // Swap may be compiled out.
    assert!(says == has || limit == "swapBytes", "{limit}: {says} {has}");
    if says {
        return test(&server, &client).await;
    }
    let file = server.dir().join("touched");
    let script = format!("touch {}", file.display());
    let limits = json!({limit: 1_000_000, "openFiles": 100});
    check_refused(&client, sh("p", &script).with("limits", limits), limit).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn tree_beyond_its_memory_is_killed() {
    with_limit("memoryBytes", async |server, client| {
        // A child takes the memory; the leader and its other child end with it.
        let script = "sleep 1000 & tail /dev/zero; exit 0";
        let limits = json!({"memoryBytes": 32 << 20});
        client.start(sh("p", script).with("limits", limits)).await;
        let exit = exit(client, "p").await;
        assert_eq!(
            (&exit["code"], &exit["endedBy"]),
            (&json!(137), &json!("oom"))
        );
        let peak = exit["usage"]["peakMemoryBytes"].as_u64();
        // Kernels before 5.19 do not count it.
        assert!(
            peak.is_none_or(|peak| (1 << 24..=40 << 20).contains(&peak)),
            "{exit}"
        );
        server.tag().alive(1).await;
        // The next one has the whole limit again.
        let limits = json!({"memoryBytes": 32 << 20});
        client.start(sh("q", "exit 4").with("limits", limits)).await;
        assert_eq!(super::exit(client, "q").await["endedBy"], "exit");
    })
    .await;
}

#[tokio::test]
async fn swap_is_limited() {
    with_limit("swapBytes", async |_, client| {
        let limits = json!({"memoryBytes": 32 << 20, "swapBytes": 0});
        let start = sh("p", "tail /dev/zero").with("limits", limits);
        client.start(start).await;
        assert_eq!(exit(client, "p").await["endedBy"], "oom");
    })
    .await;
}

#[tokio::test]
async fn processes_of_the_whole_tree_are_counted() {
    with_limit("processes", async |server, client| {
        let script = "(sleep 1000 & sleep 1000 & echo two; sleep 1000 & echo three); exit 7";
        // The shell, its subshell and two more.
        let limits = json!({"processes": 4});
        client.start(sh("p", script).with("limits", limits)).await;
        client.exited("p").await;
        let log = client.event_log("p");
        assert_eq!(log.stream("stdout"), b"two\n", "{}", log.text());
        assert!(log.text().contains("fork"), "{}", log.text());
        assert_eq!(log.code(), 7, "the limit ends nothing");
        server.tag().alive(3).await;
        client.terminate_with("p", json!({"tree": true})).await;
        server.tag().alive(1).await;
    })
    .await;
}

#[tokio::test]
async fn share_of_cpus_holds_for_the_whole_tree() {
    with_limit("cpus", async |_, client| {
        let script = "while :; do :; done & while :; do :; done";
        let start = sh("p", script).with("limits", json!({"cpus": 0.2}));
        client.start(start.with("timeoutMs", 2000)).await;
        let exit = exit(client, "p").await;
        assert_eq!(exit["endedBy"], "timeout");
        let cpu = exit["usage"]["cpuMs"].as_u64().expect("a number");
        assert!((100..900).contains(&cpu), "{exit}");
    })
    .await;
}

#[tokio::test]
async fn server_without_cgroups_refuses_what_needs_one() {
    let (server, client) = ready_with(&["--trees", "subreaper"]).await;
    let expected = ["cpuSeconds", "openFiles", "fileSizeBytes"];
    assert_eq!(enforceable(&client).await, expected);
    let info = client.call("environment/info", json!({})).await;
    let file = server.dir().join("touched");
    let script = format!("touch {}", file.display());
    for (limit, _) in IN_CGROUP {
        let reason = info["limits"]["unenforceable"][limit].as_str();
        assert!(reason.is_some_and(|reason| reason.contains("Delegate=yes")));
        let start = sh("p", &script).with("limits", json!({limit: 1}));
        check_refused(&client, start, limit).await;
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn cgroup_that_is_not_delegated_is_not_changed() {
    // The server shares its cgroup with the test, so its controllers are not its own to enable.
    let (_server, client) = ready().await;
    let info = client.call("environment/info", json!({})).await;
    let file = |name: &str| {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.unwrap_or_default().to_owned();
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let mut files = roots
            .map(|root| PathBuf::from(root).join(&own).join(name))
            .into_iter();
        files.find_map(|file| std::fs::read_to_string(file).ok())
    };
    let enabled = file("cgroup.subtree_control").unwrap_or_default();
    let uses_cgroups = info["processTrees"] == "cgroup";
    for (limit, controller) in IN_CGROUP {
        let is_enabled = enabled.split_whitespace().any(|name| name == controller);
        let says = enforceable(&client).await.iter().any(|name| name == limit);
        let expected = uses_cgroups && is_enabled;
        assert!(says == expected || limit == "swapBytes", "{limit}: {says}");
    }
}

#[tokio::test]
async fn rlimits_hold_for_descendants() {
    for kind in ["auto", "subreaper", "group"] {
        let (_server, client) = ready_with(&["--trees", kind]).await;
        let limits = json!({"openFiles": 77, "cpuSeconds": 1000, "fileSizeBytes": 4096});
        let script = "sh -c 'ulimit -n; ulimit -t; ulimit -f; ulimit -Hn; ulimit -Ht'";
        let log = client.run(sh("p", script).with("limits", limits)).await;
        // Blocks of 512 bytes.
        assert_eq!(log.text(), "77\n1000\n8\n77\n1001\n", "{kind}");
        // Without a limit, that of the server holds.
        let log = client.run(sh("q", "ulimit -f; ulimit -t")).await;
        assert_eq!(log.text(), "unlimited\nunlimited\n", "{kind}");
    }
}

#[tokio::test]
async fn process_beyond_its_cpu_time_is_ended() {
    let (_server, client) = ready().await;
    let limits = json!({"cpuSeconds": 1});
    let busy = "while :; do :; done";
    let stubborn = "trap '' XCPU; while :; do :; done";
    let child = "sh -c 'while :; do :; done'; exit $?";
    for (id, script, code) in [
        ("busy", busy, 152),
        ("stubborn", stubborn, 137),
        ("child", child, 152),
    ] {
        let start = sh(id, script).with("limits", limits.clone());
        client.start(start).await;
        let exit = exit(&client, id).await;
        let told = (&exit["code"], &exit["endedBy"]);
        assert_eq!(told, (&json!(code), &json!("cpuLimit")), "{id}");
        let cpu = exit["usage"]["cpuMs"].as_u64().expect("a number");
        assert!((500..5000).contains(&cpu), "{id} {exit}");
    }
}

#[tokio::test]
async fn file_beyond_its_size_is_not_written() {
    let (server, client) = ready().await;
    let file = server.dir().join("large");
    let script = format!("exec head -c 10000 /dev/zero > {}", file.display());
    let limits = json!({"fileSizeBytes": 4096});
    client.start(sh("p", &script).with("limits", limits)).await;
    let exit = exit(&client, "p").await;
    assert_eq!(
        (&exit["code"], &exit["endedBy"]),
        (&json!(153), &json!("signal"))
    );
    assert_eq!(std::fs::metadata(&file).expect("it exists").len(), 4096);
}

#[tokio::test]
async fn invalid_limits_are_refused() {
    let (_server, client) = ready().await;
    for (limits, message) in [
        (
            json!({"memoryBytes": 0}),
            "limits.memoryBytes must be greater than 0",
        ),
        (
            json!({"cpuSeconds": 0}),
            "limits.cpuSeconds must be greater than 0",
        ),
        (
            json!({"cpus": -1}),
            "limits.cpus must be between 0.01 and 1000000",
        ),
        (json!({"memory": 1}), "unknown field `memory`"),
        (json!({"openFiles": -1}), "invalid"),
        (json!([1]), "invalid"),
    ] {
        let start = Start::new("p", &["true"]).with("limits", limits.clone());
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602, "{limits}");
        assert!(
            error.message.contains(message),
            "{limits}: {}",
            error.message
        );
    }
    assert_eq!(client.listed("p").await, None);
    for (number, limits) in [json!(null), json!({}), json!({"cpus": null})]
        .into_iter()
        .enumerate()
    {
        let start = Start::new(&format!("p{number}"), &["true"]).with("limits", limits);
        assert_eq!(client.run(start).await.code(), 0);
    }
}
