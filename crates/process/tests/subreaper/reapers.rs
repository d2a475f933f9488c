//! Subreapers that are killed, stopped and reused.

use outpost_process::{Exit, Signal};
use rustix::process::Signal as Os;

use crate::support::*;

#[tokio::test]
async fn child_that_kills_its_subreaper_dies_with_its_tree() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 & echo other $!'; read go; kill -9 $PPID; sleep 1000";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let other = expect_number(&mut child.outputs[0], "other ").await;
    let (number, subreaper) = (pid(&child), reaper_of(&child));
    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Lost);
    let control = child.control.clone();
    eventually("the end of all", || !control.has_leftovers()).await;
    for gone_with_it in [subreaper, number, other] {
        gone(gone_with_it).await;
    }
    // The pid may be reused.
    assert!(!child.control.signal(Signal::Kill).expect("nothing is sent"));
    child.exit.reap();
    child.control.kill_tree().expect("there is nothing to kill");
    let finished = run(&spawner, sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3), "others aren't concerned");
}

#[tokio::test]
async fn child_that_stops_its_subreaper_can_be_killed() {
    let mut child = start(
        &spawner(),
        sh("kill -STOP $PPID; echo done; sleep 1000", PIPES),
    )
    .await;
    expect(&mut child.outputs[0], "done").await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
}

/// Starts a program that does this to its subreaper `$R` and the factory `$F`, with processes in and
/// outside its session. Returns their pids.
async fn start_attack(spawner: &outpost_process::Spawner, attack: &str) -> (Started, Vec<i32>) {
    let script = format!(
        "R=$PPID; F=$(cut -d' ' -f4 /proc/$R/stat); setsid sleep 1000 & echo child $!; read go; \
         {attack}; echo attacked $$; sleep 1000"
    );
    let mut child = start(spawner, sh(&script, PIPES_AND_STDIN)).await;
    // Only now: a start fails whose subreaper is killed before it is reported.
    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    // The output ends early if the factory kills it at once.
    let attacked = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("attacked ");
    let text = within("the attack", read_until(&mut child.outputs[0], attacked)).await;
    let text = String::from_utf8_lossy(&text).into_owned();
    let other = text.split("child ").nth(1).expect("a child");
    let other = other.split_whitespace().next().expect("a number");
    let pids = vec![pid(&child), other.parse().expect("a number")];
    (child, pids)
}

#[tokio::test]
async fn end_is_seen_when_supervision_is_attacked() {
    for attack in [
        "kill -STOP $R",
        "kill -STOP $F $R",
        "kill -KILL $R",
        "kill -STOP $F; kill -KILL $R",
        // Until the subreaper is gone, its processes are killed through it.
        "kill -KILL $F $R; while grep -q '^State:.[RSD]' /proc/$R/status; do :; done",
    ] {
        let spawner = spawner();
        let (mut child, pids) = start_attack(&spawner, attack).await;
        child.control.kill_tree().expect("it is killed");
        within("the exit", child.exit.wait()).await;
        child.exit.reap();
        let control = child.control.clone();
        eventually(attack, || !control.has_leftovers()).await;
        for left in pids {
            assert!(!is_running(left), "{attack}: {left} is reported as gone");
        }
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3), "{attack}");
    }
}

#[tokio::test]
async fn adopted_orphans_are_killed_when_supervision_is_killed() {
    // With the name of a subreaper.
    let directory = tempfile::tempdir().expect("create directory");
    let sleep = directory.path().join("subreaper");
    std::os::unix::fs::symlink("/bin/sleep", &sleep).expect("create link");
    for attack in ["kill -KILL $F $R", "kill -KILL $R $F", "kill -KILL $R"] {
        let spawner = adopting_spawner();
        let other = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
        // Its parent is gone, and it has left the session.
        let script = format!(
            "R=$PPID; F=$(cut -d' ' -f4 /proc/$R/stat); \
             (setsid sh -c 'echo left $$; exec {} 1000' &); read go; {attack}; sleep 1000",
            sleep.display()
        );
        let mut child = start(&spawner, sh(&script, PIPES_AND_STDIN)).await;
        let left = KillOnDrop(expect_number(&mut child.outputs[0], "left ").await);
        write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
        within("the exit", child.exit.wait()).await;
        child.exit.reap();
        let control = child.control.clone();
        control.kill_tree().expect("it is killed");
        eventually(attack, || !control.has_leftovers()).await;
        assert!(!is_running(left.0), "{attack}: it is reported as gone");
        assert!(is_running(pid(&other)), "others are not concerned");
        // With a new factory.
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3), "{attack}");
    }
}

/// The session id is 0 then, as in a container whose first process did not start a session.
#[test]
fn orphans_are_killed_when_session_leader_is_in_outer_pid_namespace() {
    let mut command = std::process::Command::new("bwrap");
    command.args([
        "--unshare-pid",
        "--dev-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--",
    ]);
    command.arg(std::env::current_exe().expect("the test has a path"));
    command.arg("reapers::adopted_orphans_are_killed_when_supervision_is_killed");
    let output = command.arg("--exact").output().expect("bwrap runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn subreaper_and_factory_survive_common_signals() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let (subreaper, factory) = (reaper_of(&child), factory_of(&child));
    for signal in [Os::INT, Os::TERM, Os::HUP, Os::QUIT, Os::USR1, Os::ALARM] {
        send(subreaper, signal);
        send(factory, signal);
    }
    // A dead subreaper could not report the exit.
    drop(child.stdin.take());
    assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
    assert!(is_running(factory));
}

#[tokio::test]
async fn subreapers_and_factory_have_their_own_sessions() {
    let spawner = spawner();
    let one = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let two = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let session = |pid: i32| {
        let stat = stat(pid).expect("it is alive");
        stat.split(' ').nth(3).expect("a session").to_owned()
    };
    let factory = factory_of(&one);
    assert_eq!(factory, factory_of(&two));
    for leader in [factory, reaper_of(&one), reaper_of(&two)] {
        assert_eq!(session(leader), leader.to_string());
    }
}

/// Only meaningful for an unprivileged user: its files in `/proc` belong to root then.
#[tokio::test]
async fn subreapers_and_factory_cannot_be_traced() {
    let child = start(&spawner(), command(&["sleep", "1000"], PIPES)).await;
    let owner = |pid: i32| {
        let environ = std::fs::metadata(format!("/proc/{pid}/environ"));
        std::os::unix::fs::MetadataExt::uid(&environ.expect("it is alive"))
    };
    for process in [factory_of(&child), reaper_of(&child)] {
        assert_eq!(owner(process), 0);
    }
    assert_eq!(owner(pid(&child)), rustix::process::getuid().as_raw());
}

#[tokio::test]
async fn idle_subreaper_is_reused() {
    let spawner = spawner();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
        seen.insert(reaper_of(&child));
        drop(child.stdin.take());
        assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
        let spawned = spawner.spawn(command(&["/no/such/program"], PIPES)).await;
        spawned.expect_err("there is none");
    }
    assert!(seen.len() < 10, "{seen:?}");
}

#[tokio::test]
async fn subreaper_with_leftovers_exits_with_the_last_of_them() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo left $!'; read go";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let subreaper = reaper_of(&child);
    drop(child.stdin.take());
    finish(&mut child).await;
    assert_eq!(parent(left), subreaper, "orphans are inherited");
    assert!(child.control.has_leftovers());
    let _end = KillOnDrop(left);
    drop(_end);
    gone(subreaper).await;
    assert!(!child.control.has_leftovers());
}

#[tokio::test]
async fn killed_idle_subreapers_are_replaced() {
    let spawner = spawner();
    for _ in 0..5 {
        let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
        let (factory, busy) = (factory_of(&child), reaper_of(&child));
        for idle in children_of(factory) {
            if idle != busy {
                send(idle, Os::KILL);
                gone(idle).await;
            }
        }
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3));
        drop(child.stdin.take());
        assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
    }
}

#[tokio::test]
async fn orphans_are_reaped_while_leader_runs_or_is_a_zombie() {
    // Twenty orphans that exit at once, and one that exits later.
    let script = "i=0; while test $i -lt 20; do sh -c ': &'; i=$(($i + 1)); done; \
                  sh -c 'sleep 1000 & echo last $!'; read go; exit 0";
    let mut child = start(&spawner(), sh(script, PIPES_AND_STDIN)).await;
    let last = KillOnDrop(expect_number(&mut child.outputs[0], "last ").await);
    let (subreaper, number) = (reaper_of(&child), pid(&child));
    eventually("the orphans", || children_of(subreaper).len() == 2).await;
    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    drop(last);
    eventually("the last one", || children_of(subreaper) == [number]).await;
    assert_eq!(state(number), Some('Z'), "it is the server's to release");
}
