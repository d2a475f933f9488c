//! Work that is left and found again.

use std::time::Duration;

use outpost_client::{DeliveryChoice, Lease, Place as _, Remote, RemoteOptions, Standing};
use outpost_testkit::{Transport, patience};

use super::{output, script};
use crate::outpost;

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_process_is_found_by_another_client() {
    let server = outpost().on(Transport::Unix).start().await;
    let url = &server.urls()[0];
    let options = RemoteOptions {
        session_label: Some("build".to_owned()),
        lease: Lease::For(Duration::from_secs(600)),
        delivery: DeliveryChoice::Push,
        ..RemoteOptions::default()
    };
    let first = Remote::connect(url, options).await.unwrap();
    let start = script(&server, "echo one; read x; echo two").stdin();
    let process = first.start(start.id("work")).await.unwrap();
    let mut events = process.events();
    patience::soon("the first line", events.next()).await;
    process.detach();
    drop((events, process));
    first.close().await.unwrap();
    drop(first);

    let owner = Remote::connect(url, RemoteOptions::default())
        .await
        .unwrap();
    let sessions = owner.sessions().await.unwrap();
    let left = sessions
        .iter()
        .find(|session| session.label.as_deref() == Some("build"))
        .unwrap();
    assert_eq!(left.processes[0].process_id, "work");

    let second = Remote::connect(
        url,
        RemoteOptions {
            resume: Some(left.session_id.clone()),
            ..RemoteOptions::default()
        },
    )
    .await
    .unwrap();
    let found = second.attach("work", 0).await.unwrap();
    // A third one takes it away, and the second one doesn't fight.
    let third = Remote::connect(
        url,
        RemoteOptions {
            resume: Some(left.session_id.clone()),
            takeover: true,
            ..RemoteOptions::default()
        },
    )
    .await
    .unwrap();
    let error = patience::soon("the loss", found.wait()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "exec-server transport disconnected: the session was taken over by another connection"
    );
    let found = third.attach("work", 0).await.unwrap();
    found.write("\n").await.unwrap();
    assert_eq!(output(&found).await, ("one\ntwo\n".to_owned(), 0));
    assert_eq!(*third.standing().borrow(), Standing::Connected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_takes_its_processes_along() {
    let server = outpost().start().await;
    let remote = Remote::connect(&server.urls()[0], RemoteOptions::default())
        .await
        .unwrap();
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    patience::soon("the end", remote.close_session())
        .await
        .unwrap();
    assert_eq!(
        process.wait().await.unwrap_err().to_string(),
        "exec-server transport disconnected: the session was closed"
    );
    assert!(remote.processes().await.unwrap().is_empty());
}
