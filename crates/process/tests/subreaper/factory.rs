//! The subreaper factory.

use outpost_process::Exit;
use rustix::process::Signal as Os;

use crate::support::*;

#[tokio::test]
async fn killed_factory_is_replaced_and_running_trees_continue() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 & echo left $!'; read go; exit 4";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let factory = factory_of(&child);
    send(factory, Os::KILL);
    gone(factory).await;

    // More than there are idle subreapers.
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await);
    }
    let next = others.iter().map(|child| factory_of(child));
    let next: Vec<_> = next.filter(|next| is_factory(*next)).collect();
    assert!(!next.is_empty() && !next.contains(&factory), "{next:?}");
    for mut other in others {
        drop(other.stdin.take());
        assert_eq!(finish(&mut other).await.exit, Exit::Code(0));
    }

    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(4));
    child.exit.reap();
    child.control.kill_tree().expect("it is killed");
    gone(left).await;
}

/// Whether a process is a factory. Subreapers of a killed factory get another parent.
fn is_factory(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name == "reaper-factory\n"
}

#[tokio::test]
async fn stopped_factory_is_resumed() {
    let spawner = spawner();
    let first = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let factory = factory_of(&first);
    send(factory, Os::STOP);
    eventually("the stop", || state(factory) == Some('T')).await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await);
    }
    assert!(others.iter().all(|child| is_running(pid(child))));
}

#[tokio::test]
async fn factory_and_subreapers_end_with_the_spawner() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let factory = factory_of(&child);
    drop(child.stdin.take());
    finish(&mut child).await;
    drop(child);
    let idle = children_of(factory);
    assert!(!idle.is_empty(), "there are idle subreapers");
    drop(spawner);
    for subreaper in idle {
        gone(subreaper).await;
    }
    assert_eq!(stat(factory), None, "the factory is reaped");
}
