//! What can be done to a process.

use std::time::Duration;

use outpost_client::{Error, Event, SignalName, Terminate};

use crate::places::{on_every_place, sh, soon, story, told};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_the_group() {
    on_every_place(async |place| {
        let script = "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.01; done";
        let process = place.start(sh(script)).await.unwrap();
        let mut events = process.events();
        soon("the trap", events.next()).await.unwrap();
        process.signal(SignalName::User1).await.unwrap();
        let told = told(&mut events, 1).await;
        assert_eq!(told.stdout(), "caught\n");
        assert_eq!(told.exit, Some(9));
        process.signal(SignalName::Interrupt).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_its_size() {
    on_every_place(async |place| {
        let script = "stty size; read x; stty size";
        let process = place.start(sh(script).size(40, 120)).await.unwrap();
        let mut events = process.events();
        let first = soon("the first size", events.next()).await.unwrap();
        assert!(
            matches!(&first, Event::Output { bytes, .. } if bytes == "40 120\r\n"),
            "{first:?}"
        );
        process.resize(50, 132).await.unwrap();
        process.write("\n").await.unwrap();
        assert_eq!(told(&mut events, 1).await.stdout(), "\r\n50 132\r\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_resized_says_so() {
    on_every_place(async |place| {
        let process = place.start(sh("sleep 60").id("flat")).await.unwrap();
        let refused = process.resize(1, 1).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "process flat is not attached to a PTY (-32600)"
        );
        let refused = process.resize(0, 1).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { code: -32602, .. }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_kills_the_whole_tree() {
    on_every_place(async |place| {
        let process = place.start(sh("sleep 600 & sleep 600")).await.unwrap();
        assert!(process.terminate().await.unwrap());
        let told = story(&process).await;
        assert_eq!(told.exit, Some(137));
        assert!(told.closed, "nobody holds its streams");
        assert!(
            !process.terminate().await.unwrap(),
            "there was nothing left"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grace_is_given() {
    on_every_place(async |place| {
        let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let process = place.start(sh(script)).await.unwrap();
        let mut events = process.events();
        soon("the trap", events.next()).await.unwrap();
        let how = Terminate {
            grace: Some(Duration::from_secs(30)),
            tree: false,
        };
        assert!(process.terminate_with(how).await.unwrap());
        let told = told(&mut events, 1).await;
        assert_eq!((told.stdout().as_str(), told.exit), ("bye\n", Some(0)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out() {
    on_every_place(async |place| {
        let start = sh("sleep 600").timeout(Duration::from_millis(100));
        let process = place.start(start).await.unwrap();
        assert_eq!(story(&process).await.exit, Some(124));
    })
    .await;
}
