//! Environment, arguments and limits of a child.

use outpost_process::{SpawnErrorKind, Spawner, SpawnerOptions};

use crate::support::*;

#[tokio::test]
async fn environment_is_exactly_as_given() {
    let mut command = command(&["/usr/bin/env"], PIPES);
    command.env = vec![
        ("B".into(), "2".into()),
        ("A".into(), "x=y z".into()),
        ("EMPTY".into(), "".into()),
    ];
    let finished = run(&spawner(), command).await;
    assert_eq!(finished.stdout, "B=2\nA=x=y z\nEMPTY=\n");
}

#[tokio::test]
async fn environment_is_not_inherited() {
    let mut command = command(&["/usr/bin/env"], PIPES);
    command.env = Vec::new();
    assert_eq!(run(&spawner(), command).await.stdout, "");
}

#[tokio::test]
async fn arguments_pass_unchanged() {
    let argv = ["printf", "<%s>", "", "a b", "$HOME", "*", "\n", "-n", "ü"];
    let finished = run(&spawner(), command(&argv, PIPES)).await;
    assert_eq!(finished.stdout, "<><a b><$HOME><*><\n><-n><ü>");
}

#[tokio::test]
async fn arg0_changes_only_what_the_child_sees() {
    let mut command = command(&["cat", "/proc/self/cmdline"], PIPES);
    command.arg0 = Some("-another name".into());
    let finished = run(&spawner(), command).await;
    assert_eq!(finished.stdout, "-another name\0/proc/self/cmdline\0");
}

#[tokio::test]
async fn too_many_arguments_fail_the_start() {
    let mut command = command(&["true"], PIPES);
    command.argv.push("x".repeat(16 * 1024 * 1024).into());
    let spawned = spawner().spawn(command).await;
    let error = spawned.expect_err("no system takes 16 MiB in one argument");
    assert_eq!(error.kind(), SpawnErrorKind::NotExecutable);
    assert_eq!(error.raw_os_error(), Some(7), "{error}");
}

#[tokio::test]
async fn children_get_their_own_open_files_limit() {
    let options = SpawnerOptions {
        child_open_files: Some((100, 200)),
        ..SpawnerOptions::default()
    };
    let spawner = Spawner::new(options).expect("a spawner starts");
    let finished = run(&spawner, sh("ulimit -Sn; ulimit -Hn", PIPES)).await;
    assert_eq!(finished.stdout, "100\n200\n");
}

#[tokio::test]
async fn limit_that_cannot_be_set_is_an_error() {
    let options = SpawnerOptions {
        child_open_files: Some((200, 100)),
        ..SpawnerOptions::default()
    };
    let spawner = Spawner::new(options).expect("a spawner starts");
    let error = spawner.spawn(command(&["true"], PIPES)).await;
    let error = error.expect_err("the soft limit is above the hard one");
    assert_eq!(error.kind(), SpawnErrorKind::Limits);
}

#[tokio::test]
async fn children_have_a_higher_out_of_memory_score() {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("procfs is mounted");
    let own: i32 = own.trim().parse().expect("a number");
    for spawner in spawner_of_each_kind() {
        let score = run(
            &spawner,
            command(&["cat", "/proc/self/oom_score_adj"], PIPES),
        )
        .await;
        let score = score.stdout;
        let expected = (own + 500).min(1000);
        assert_eq!(score, format!("{expected}\n"), "{:?}", spawner.tree_kind());
    }
}
