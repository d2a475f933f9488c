//! Signals to a whole process tree.

use outpost_process::{Signal, TreeKind};
use tempfile::TempDir;

use crate::support::*;

/// A leader, a descendant in another session with a parent, and one without. Each prints the signals
/// that it gets.
const TREE: &str = r#"
case $1 in
leader) setsid sh $0 left & sh $0 fork ;;
brief) setsid sh $0 left & sh $0 fork; read go; exit ;;
fork) setsid sh $0 daemon & exit ;;
esac
trap "echo $1 one" USR1
trap "echo $1 end; exit" TERM
echo $1 ready
while :; do sleep 0.01; done
"#;

fn tree() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tree");
    script(&path, TREE, 0o755);
    let path = path.to_str().expect("plain").to_owned();
    (folder, path)
}

fn finds_daemons(kind: TreeKind) -> bool {
    match kind {
        TreeKind::Cgroup | TreeKind::Subreaper => true,
        TreeKind::Group => false,
    }
}

fn count(text: &str, line: &str) -> usize {
    text.lines().filter(|seen| *seen == line).count()
}

#[tokio::test]
async fn every_process_gets_signal_once() {
    let (_folder, path) = tree();
    for spawner in spawner_of_each_kind() {
        let daemons = finds_daemons(spawner.tree_kind());
        let stranger = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
        let argv = ["sh", path.as_str(), "leader"];
        let mut child = start(&spawner, command(&argv, PIPES)).await;
        let all_ready = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.matches(" ready\n").count() == 3
        };
        within("all ready", read_until(&mut child.outputs[0], all_ready)).await;

        child
            .control
            .signal_tree(Signal::User1)
            .expect("it is sent");
        let told = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let daemon = count(&text, "daemon one") == 1 || !daemons;
            count(&text, "leader one") == 1 && count(&text, "left one") == 1 && daemon
        };
        let first = within("the first", read_until(&mut child.outputs[0], told)).await;
        child.control.signal_tree(Signal::Terminate).expect("sent");
        let ended = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            count(&text, "leader end") == 1 && count(&text, "left end") == 1
        };
        let ends = within("the ends", read_until(&mut child.outputs[0], ended)).await;
        if !daemons {
            for hidden in pids_running(&path) {
                drop(KillOnDrop(hidden));
            }
        }
        let rest = within("the rest", read_to_end(&mut child.outputs[0])).await;
        let text = String::from_utf8_lossy(&[first, ends, rest].concat()).into_owned();
        let members: &[_] = match daemons {
            true => &["leader", "left", "daemon"],
            false => &["leader", "left"],
        };
        for member in members {
            assert_eq!(count(&text, &format!("{member} one")), 1, "{text}");
            assert_eq!(count(&text, &format!("{member} end")), 1, "{text}");
        }
        assert!(is_running(pid(&stranger)), "{:?}", spawner.tree_kind());
    }
}

#[tokio::test]
async fn leftover_processes_get_signal() {
    let (_folder, path) = tree();
    for spawner in spawner_of_each_kind() {
        if !finds_daemons(spawner.tree_kind()) {
            continue; // A process group does not track processes outside the session.
        }
        let argv = ["sh", path.as_str(), "brief"];
        let mut child = start(&spawner, command(&argv, PIPES_AND_STDIN)).await;
        let all_ready = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.matches(" ready\n").count() == 2
        };
        within("all ready", read_until(&mut child.outputs[0], all_ready)).await;
        drop(child.stdin.take());
        within("the exit", child.exit.wait()).await;
        child.exit.reap();
        child.control.signal_tree(Signal::Terminate).expect("sent");
        let text = within("the end", read_to_end(&mut child.outputs[0])).await;
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(count(&text, "left end"), 1, "{text}");
        assert_eq!(count(&text, "daemon end"), 1, "{text}");
        let control = child.control.clone();
        eventually("the end of all", || !control.has_leftovers()).await;
        child
            .control
            .signal_tree(Signal::Terminate)
            .expect("no process is left");
    }
}

#[tokio::test]
async fn group_members_get_signal_after_exit() {
    for spawner in spawner_of_each_kind() {
        let script = "sleep 1000 >/dev/null 2>&1 & echo left $!";
        let mut child = start(&spawner, sh(script, PIPES)).await;
        let left = expect_number(&mut child.outputs[0], "left ").await;
        let _end = KillOnDrop(left);
        finish(&mut child).await;
        assert!(is_running(left), "a natural exit kills nothing");
        child.control.signal_tree(Signal::Terminate).expect("sent");
        gone(left).await;
    }
}

/// The pids of all processes that run this script.
fn pids_running(path: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("there is a proc");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &i32| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0);
            arguments.any(|argument| argument == path.as_bytes())
        })
        .collect()
}
