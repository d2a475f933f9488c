//! `outpost kill`: ends processes, or signals them.

use outpost_testkit::programs;

use super::home;
use crate::outpost;

#[tokio::test]
async fn the_whole_tree_is_ended() {
    let home = home();
    let id = home.detach("sleep 1000 & echo ready; wait").await;
    home.watch(&["logs", "-f", &id]).prints("ready").await;
    let said = home.output(&["kill", &id[..5]]).await;
    assert!(said.starts_with(&format!("{id} has ended with ")), "{said}");
    // The server is left, and where there are no cgroups what keeps trees for it.
    let ps = home.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  exited ")), "{ps}");
    let sleeps = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
    };
    assert!(!home.mark().living().iter().any(sleeps));
    home.stop().await;
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed() {
    let home = home();
    let id = home.detach(programs::IGNORES_TERM).await;
    home.watch(&["logs", "-f", &id]).prints("ready").await;
    let said = home.output(&["kill", &id]).await;
    assert_eq!(said, format!("{id} has ended with 137\n"));
    let again = home.output(&["kill", &id]).await;
    assert_eq!(again, format!("{id} had already exited with 137\n"));
    home.stop().await;
}

#[tokio::test]
async fn a_signal_is_sent_and_nothing_else() {
    let home = home();
    let script = "trap 'echo caught' USR1; echo ready; while :; do sleep 0.02; done";
    let id = home.detach(script).await;
    let follower = home.watch(&["logs", "-f", &id]);
    follower.prints("ready").await;
    let said = home.output(&["kill", "-s", "sigusr1", &id]).await;
    assert_eq!(said, format!("{id} got USR1\n"));
    follower.prints("caught").await;
    let ps = home.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    home.stop().await;
}

#[tokio::test]
async fn a_signal_can_be_written_as_for_kill() {
    let home = home();
    for (flag, name) in [("-9", "KILL"), ("-KILL", "KILL"), ("-INT", "INT")] {
        let id = home.detach("exec sleep 1000").await;
        let said = home.output(&["kill", flag, &id]).await;
        assert_eq!(said, format!("{id} got {name}\n"));
        home.run(&["logs", "-f", &id]).await;
    }
    home.stop().await;
}

#[tokio::test]
async fn what_is_unknown_does_not_keep_the_others() {
    let home = home();
    let id = home.detach("exec sleep 1000").await;
    let said = home.run(&["kill", "nope", &id]).await;
    assert_eq!(said.code, Some(1));
    assert!(
        said.stdout.starts_with(&format!("{id} has ended with ")),
        "{said:?}"
    );
    assert!(said.stderr.contains("no process nope"), "{said:?}");
    home.stop().await;
}

#[tokio::test]
async fn signals_that_nobody_knows_are_a_misuse() {
    for args in [&["kill", "-s", "NOPE", "x"][..], &["kill"]] {
        let misuse = outpost().run(args).await;
        assert_eq!(misuse.code, Some(2), "{misuse:?}");
    }
    let misuse = outpost().run(&["kill", "-s", "SEGV", "x"]).await;
    assert!(
        misuse.stderr.contains("expected one of HUP, INT"),
        "{misuse:?}"
    );
}
