//! Signals, terminal size and termination.

use std::time::Duration;

use outpost_client::{Error, Event, Signal, Terminate};

use crate::harness::{on_every_executor, read_after, read_all, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn signal_reaches_the_group() {
    on_every_executor(async |executor| {
        let script = "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.01; done";
        let process = executor.start(sh(script)).await.unwrap();
        let mut events = process.events();
        soon("the trap", events.next()).await.unwrap();
        process.signal(Signal::User1).await.unwrap();
        let log = read_after(&mut events, 1).await;
        assert_eq!(log.stdout(), "caught\n");
        assert_eq!(log.exit, Some(9));
        process.signal(Signal::Interrupt).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_can_be_resized() {
    on_every_executor(async |executor| {
        let script = "stty size; read x; stty size";
        let process = executor.start(sh(script).size(40, 120)).await.unwrap();
        let mut events = process.events();
        let first = soon("the first size", events.next()).await.unwrap();
        assert!(
            matches!(&first, Event::Output { bytes, .. } if bytes == "40 120\r\n"),
            "{first:?}"
        );
        process.resize(50, 132).await.unwrap();
        process.write("\n").await.unwrap();
        assert_eq!(read_after(&mut events, 1).await.stdout(), "\r\n50 132\r\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_without_terminal_fails() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("sleep 60").id("flat")).await.unwrap();
        let refused = process.resize(1, 1).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "process flat is not attached to a PTY (-32600)"
        );
        let refused = process.resize(0, 1).await.unwrap_err();
        assert!(matches!(refused, Error::Rejected { code: -32602, .. }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_kills_the_whole_tree() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("sleep 600 & sleep 600")).await.unwrap();
        assert!(process.terminate().await.unwrap());
        let log = read_all(&process).await;
        assert_eq!(log.exit, Some(137));
        assert!(log.closed, "its streams are closed");
        assert!(!process.terminate().await.unwrap(), "it has exited");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grace_period_precedes_the_kill() {
    on_every_executor(async |executor| {
        let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let process = executor.start(sh(script)).await.unwrap();
        let mut events = process.events();
        soon("the trap", events.next()).await.unwrap();
        let how = Terminate::new().grace(Duration::from_secs(30));
        assert!(process.terminate_with(how).await.unwrap());
        let log = read_after(&mut events, 1).await;
        assert_eq!((log.stdout().as_str(), log.exit), ("bye\n", Some(0)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_kills_the_process() {
    on_every_executor(async |executor| {
        let start = sh("sleep 600").timeout(Duration::from_millis(100));
        let process = executor.start(start).await.unwrap();
        assert_eq!(read_all(&process).await.exit, Some(124));
    })
    .await;
}
