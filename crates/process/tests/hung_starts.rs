//! Starts on a file system that does not answer. In its own program, because it counts threads.

use std::time::Duration;

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "these tests need only a part of it")]
mod support;

mod held_file;

use held_file::HeldFile;
use outpost_process::{Exit, SpawnErrorKind, Spawner, SpawnerOptions, TreeChoice, TreeKind};
use support::*;

fn spawners(start_timeout: Duration) -> impl Iterator<Item = Spawner> {
    let choices = [TreeChoice::Cgroup, TreeChoice::Subreaper, TreeChoice::Group];
    choices.into_iter().filter_map(move |trees| {
        let spawner = Spawner::new(SpawnerOptions {
            trees,
            subreaper: Some(reaper_command()),
            start_timeout,
            ..SpawnerOptions::default()
        });
        // Not every host has cgroups.
        match trees {
            TreeChoice::Cgroup => spawner.ok(),
            _ => Some(spawner.expect("a spawner starts")),
        }
    })
}

/// The number of threads that start programs.
fn spawner_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is a proc");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = tasks.filter_map(name);
    names.filter(|name| name.trim_end() == "spawner").count()
}

/// One test for both cases, because the threads of the process are counted.
#[tokio::test]
async fn hung_start_costs_only_itself() {
    hung_starts_fail_after_the_timeout().await;
    hung_starts_can_be_cancelled().await;
}

async fn hung_starts_fail_after_the_timeout() {
    for spawner in spawners(Duration::from_secs(2)) {
        let kind = spawner.tree_kind();
        let held = HeldFile::new();
        let path = held.path();
        let path = path.to_str().expect("a plain path");
        let hung: Vec<_> = (0..4)
            .map(|_| {
                let spawner = spawner.clone();
                let command = command(&[path], PIPES);
                tokio::spawn(async move { spawner.spawn(command).await })
            })
            .collect();
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3), "{kind:?}");
        for start in hung {
            let result = within("the answer", start).await.expect("no panic");
            let error = result.expect_err("the file system does not answer");
            assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT), "{kind:?}");
            let message = error.to_string();
            assert!(message.contains(path), "{message}");
            assert!(
                message.ends_with("the file system did not answer within 2s"),
                "{message}"
            );
            if kind != TreeKind::Subreaper {
                assert_eq!(error.kind(), SpawnErrorKind::NotExecutable);
            }
        }
        // The child is killed, so the file can be waited for by others again.
        eventually("the end of replaced threads", || spawner_threads() == 2).await;
        drop(held);
        let finished = run(&spawner, sh("exit 4", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(4), "{kind:?}");
    }
}

async fn hung_starts_can_be_cancelled() {
    for spawner in spawners(Duration::from_secs(600)) {
        let held = HeldFile::new();
        let path = held.path();
        let path = path.to_str().expect("a plain path");
        for _ in 0..3 {
            let hung = spawner.spawn(command(&[path], PIPES));
            let given_up = tokio::time::timeout(Duration::from_secs(1), hung).await;
            assert!(given_up.is_err(), "the file system does not answer");
        }
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3), "{:?}", spawner.tree_kind());
        eventually("the end of replaced threads", || spawner_threads() == 2).await;
    }
}
