//! Tests sessions that are left and resumed.

use std::time::Duration;

use outpost_client::{
    ConnectionState, DeliveryMode, Executor as _, Lease, RemoteExecutor, RemoteOptions,
};
use outpost_testkit::{Transport, deadline};

use super::{output, script};
use crate::outpost;

#[tokio::test(flavor = "multi_thread")]
async fn another_client_finds_a_detached_process() {
    let server = outpost().on(Transport::Unix).start().await;
    let url = &server.urls()[0];
    let options = RemoteOptions::default()
        .session_label("build")
        .lease(Lease::For(Duration::from_secs(600)))
        .delivery(DeliveryMode::Push);
    let first = RemoteExecutor::connect(url, options).await.unwrap();
    let start = script(&server, "echo one; read x; echo two").stdin();
    let process = first.start(start.id("work")).await.unwrap();
    let mut events = process.events();
    deadline::expect_soon("the first line", events.next()).await;
    process.detach();
    drop((events, process));
    first.close().await.unwrap();
    drop(first);

    let owner = RemoteExecutor::connect(url, RemoteOptions::default())
        .await
        .unwrap();
    let sessions = owner.sessions().await.unwrap();
    let left = sessions
        .iter()
        .find(|session| session.label.as_deref() == Some("build"))
        .unwrap();
    assert_eq!(left.processes[0].process_id, "work");

    let second = RemoteExecutor::connect(
        url,
        RemoteOptions::default().resume(left.session_id.clone()),
    )
    .await
    .unwrap();
    let found = second.attach("work", 0).await.unwrap();
    // A third client takes the session over, and the second one doesn't take it back.
    let third = RemoteExecutor::connect(
        url,
        RemoteOptions::default()
            .resume(left.session_id.clone())
            .takeover(true),
    )
    .await
    .unwrap();
    let error = deadline::expect_soon("the loss", found.wait())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "exec-server transport disconnected: the session was taken over by another connection"
    );
    let found = third.attach("work", 0).await.unwrap();
    found.write("\n").await.unwrap();
    assert_eq!(output(&found).await, ("one\ntwo\n".to_owned(), 0));
    assert_eq!(
        *third.connection_state().borrow(),
        ConnectionState::Connected
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_session_ends_its_processes() {
    let server = outpost().start().await;
    let remote = RemoteExecutor::connect(&server.urls()[0], RemoteOptions::default())
        .await
        .unwrap();
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    deadline::expect_soon("the end", remote.close_session())
        .await
        .unwrap();
    assert_eq!(
        process.wait().await.unwrap_err().to_string(),
        "exec-server transport disconnected: the session was closed"
    );
    assert!(remote.processes().await.unwrap().is_empty());
}
