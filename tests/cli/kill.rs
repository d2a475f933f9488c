//! Tests `outpost kill`.

use outpost_testkit::programs;

use super::new_user;
use crate::outpost;

#[tokio::test]
async fn whole_tree_is_killed() {
    let user = new_user();
    let id = user.detach("sleep 1000 & echo ready; wait").await;
    user.spawn(&["logs", "-f", &id])
        .wait_for_stdout("ready")
        .await;
    let printed = user.output(&["kill", &id[..5]]).await;
    assert!(
        printed.starts_with(&format!("{id} has ended with ")),
        "{printed}"
    );
    // The server is left, and its subreapers on hosts without cgroups.
    let ps = user.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  exited ")), "{ps}");
    let sleeps = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
    };
    assert!(!user.tag().living().iter().any(sleeps));
    user.stop().await;
}

#[tokio::test]
async fn process_ignoring_sigterm_is_killed() {
    let user = new_user();
    let id = user.detach(programs::IGNORES_TERM).await;
    user.spawn(&["logs", "-f", &id])
        .wait_for_stdout("ready")
        .await;
    let printed = user.output(&["kill", &id]).await;
    assert_eq!(printed, format!("{id} has ended with 137\n"));
    let again = user.output(&["kill", &id]).await;
    assert_eq!(again, format!("{id} had already exited with 137\n"));
    user.stop().await;
}

#[tokio::test]
async fn signal_is_sent_without_termination() {
    let user = new_user();
    let script = "trap 'echo caught' USR1; echo ready; while :; do sleep 0.02; done";
    let id = user.detach(script).await;
    let follower = user.spawn(&["logs", "-f", &id]);
    follower.wait_for_stdout("ready").await;
    let printed = user.output(&["kill", "-s", "sigusr1", &id]).await;
    assert_eq!(printed, format!("{id} got USR1\n"));
    follower.wait_for_stdout("caught").await;
    let ps = user.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    user.stop().await;
}

#[tokio::test]
async fn signal_accepts_the_syntax_of_kill() {
    let user = new_user();
    for (flag, name) in [("-9", "KILL"), ("-KILL", "KILL"), ("-INT", "INT")] {
        let id = user.detach("exec sleep 1000").await;
        let printed = user.output(&["kill", flag, &id]).await;
        assert_eq!(printed, format!("{id} got {name}\n"));
        user.run(&["logs", "-f", &id]).await;
    }
    user.stop().await;
}

#[tokio::test]
async fn unknown_id_does_not_affect_the_others() {
    let user = new_user();
    let id = user.detach("exec sleep 1000").await;
    let output = user.run(&["kill", "nope", &id]).await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.stdout.starts_with(&format!("{id} has ended with ")),
        "{output:?}"
    );
    assert!(output.stderr.contains("no process nope"), "{output:?}");
    user.stop().await;
}

#[tokio::test]
async fn unknown_signal_is_a_usage_error() {
    for args in [&["kill", "-s", "NOPE", "x"][..], &["kill"]] {
        let output = outpost().run(args).await;
        assert_eq!(output.code, Some(2), "{output:?}");
    }
    let output = outpost().run(&["kill", "-s", "SEGV", "x"]).await;
    assert!(
        output.stderr.contains("expected one of HUP, INT"),
        "{output:?}"
    );
}

#[tokio::test]
async fn help_names_the_signals() {
    let help = outpost().run(&["kill", "--help"]).await.stdout;
    for part in [
        "HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or WINCH",
        "with SIGHUP",
        "SIGKILL after 5s",
    ] {
        assert!(help.contains(part), "{help}");
    }
}
