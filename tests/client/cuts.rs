//! Tests that the client reconnects without loss after the link is cut.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outpost_client::{
    ConnectionState, DeliveryMode, Event, Executor as _, Lease, ReconnectFailure, RemoteExecutor,
    RemoteOptions, TlsConfig, TlsOptions,
};
use outpost_testkit::{Direction, FaultyLink, SequenceCheck, Server, deadline};

use super::{connect, run, script};
use crate::auth::certificates::{Authority, secure_port, tls_arguments};
use crate::outpost;

/// Waits until the client has lost its connection and is connected again.
pub(super) async fn wait_reconnected(remote: &RemoteExecutor, cut: impl Future<Output = ()>) {
    let mut state = remote.connection_state();
    cut.await;
    // Not `wait_for`: the client may have reconnected before this task runs again.
    let lost = deadline::expect_soon("the loss", state.changed()).await;
    lost.unwrap();
    let found = state.wait_for(|now| *now != ConnectionState::Recovering);
    let found = deadline::expect_soon("the connection", found)
        .await
        .unwrap()
        .clone();
    assert_eq!(found, ConnectionState::Connected);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_complete_over_twenty_cuts() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let remote = connect(link.url()).await.unwrap();
    check_output_over_twenty_cuts(&server, &link, &remote).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_complete_over_twenty_cuts_of_a_tls_link() {
    let (server, link, remote) = with_tls().await;
    check_output_over_twenty_cuts(&server, &link, &remote).await;
}

/// A server, a client that uses TLS, and the link between them, on which records are cut anywhere.
async fn with_tls() -> (Server, FaultyLink, RemoteExecutor) {
    let files = tempfile::tempdir().expect("a directory");
    let certificate = Authority::new().for_localhost();
    certificate.write(files.path());
    let arguments = tls_arguments(files.path());
    let server = outpost()
        .args(&arguments.each_ref().map(String::as_str))
        .listen("wss://127.0.0.1:0")
        .start()
        .await;
    let address = format!("127.0.0.1:{}", secure_port(&server));
    let link = FaultyLink::to(&address).await;
    let fingerprint = certificate.fingerprint().parse();
    let options = TlsOptions {
        fingerprint: Some(fingerprint.expect("a fingerprint")),
        ..TlsOptions::default()
    };
    let tls = TlsConfig::new(&options).expect("options");
    let url = link.url().replace("ws://", "wss://");
    let remote = RemoteExecutor::connect(&url, RemoteOptions::default().tls(tls)).await;
    (server, link, remote.expect("a connection"))
}

/// Checks that no event is lost or comes twice while the link is cut in three ways.
async fn check_output_over_twenty_cuts(
    server: &Server,
    link: &FaultyLink,
    remote: &RemoteExecutor,
) {
    let total = 3_000_000;
    let process = remote
        .start(script(server, &format!("seq 1 {total}; exit 9")))
        .await
        .unwrap();
    let lines = Arc::new(Mutex::new(SequenceCheck::default()));
    let taken = Arc::clone(&lines);
    let mut events = process.events();
    let reading = tokio::spawn(async move {
        let (mut last, mut code) = (0, None);
        while let Some(event) = deadline::expect_soon("an event", events.next()).await {
            last += 1;
            match event {
                Event::Output { seq, bytes, .. } => {
                    assert_eq!(seq, last);
                    taken.lock().unwrap().take(&bytes);
                }
                Event::Exited { code: exit, .. } => code = Some(exit),
                Event::Closed { .. } => return code,
                Event::Failed { error } => panic!("{error}"),
            }
        }
        panic!("it was never closed");
    });
    for round in 0..20 {
        let due = total * (round + 1) / 22;
        let count = || lines.lock().unwrap().count();
        deadline::poll_until("more lines", || (count() >= due).then_some(())).await;
        let cut = async {
            match round % 3 {
                0 => link.stall(Direction::ToClient),
                1 => link.half_close(Direction::ToServer),
                _ => {}
            }
            link.cut().await;
            link.open();
        };
        wait_reconnected(remote, cut).await;
    }
    assert_eq!(reading.await.unwrap(), Some(9));
    assert_eq!(lines.lock().unwrap().count(), total);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_arrives_once_over_cuts() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let remote = connect(link.url()).await.unwrap();
    check_input_over_cuts(&server, &link, &remote).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_arrives_once_over_cuts_of_a_tls_link() {
    let (server, link, remote) = with_tls().await;
    check_input_over_cuts(&server, &link, &remote).await;
}

async fn check_input_over_cuts(server: &Server, link: &FaultyLink, remote: &RemoteExecutor) {
    let process = remote
        .start(script(server, "exec cat").stdin())
        .await
        .unwrap();
    let mut expected = String::new();
    for number in 0..200 {
        let line = format!("line {number}\n");
        expected.push_str(&line);
        if number % 20 == 19 {
            let (written, ()) =
                tokio::join!(process.write(line), wait_reconnected(remote, link.cut()));
            written.unwrap();
        } else {
            process.write(line).await.unwrap();
        }
    }
    process.close_stdin().await.unwrap();
    assert_eq!(super::output(&process).await, (expected, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_output_is_completed_by_reads() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let options = RemoteOptions::default().delivery(DeliveryMode::Push);
    let remote = RemoteExecutor::connect(link.url(), options).await.unwrap();
    let start = script(
        &server,
        "read x; seq 1 20000; read x; seq 20001 40000; exit 3",
    );
    let process = remote.start(start.stdin()).await.unwrap();
    let reading = super::output(&process);
    let write_input = async {
        wait_reconnected(&remote, link.cut()).await;
        process.write("\n").await.unwrap();
        wait_reconnected(&remote, link.cut()).await;
        process.write("\n").await.unwrap();
        wait_reconnected(&remote, link.cut()).await;
    };
    let ((text, code), ()) = tokio::join!(reading, write_input);
    assert_eq!(code, 3);
    assert_eq!(text.lines().count(), 40_000);
    let expected: String = (1..=40_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(text, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_server_fails_every_process() {
    let mut server = outpost().start().await;
    let options = RemoteOptions::default();
    let remote = RemoteExecutor::connect(&server.urls()[0], options)
        .await
        .unwrap();
    assert_eq!(
        run(&remote, script(&server, "echo hi")).await,
        ("hi\n".to_owned(), 0)
    );
    let process = remote
        .start(script(&server, "exec sleep 600"))
        .await
        .unwrap();
    server.signal(rustix::process::Signal::TERM);
    server.wait().await;
    let error = deadline::expect_soon("the failure", process.wait()).await;
    // The end of the process may arrive before the end of the connection.
    if let Err(error) = error {
        let message = error.to_string();
        assert!(
            message.starts_with("exec-server transport disconnected: "),
            "{message}"
        );
    }
    let mut state = remote.connection_state();
    let failed = state.wait_for(|now| matches!(now, ConnectionState::Failed { .. }));
    let failed = deadline::expect_soon("the failure", failed)
        .await
        .unwrap()
        .clone();
    let ConnectionState::Failed { reason, cause } = failed else {
        unreachable!("it has failed");
    };
    assert_eq!(&*reason, "the server is shutting down");
    assert_eq!(cause, ReconnectFailure::ShutDown);
    let rejected = remote.start(script(&server, "true")).await.unwrap_err();
    assert!(
        rejected
            .to_string()
            .starts_with("exec-server transport disconnected: ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_restored_over_a_cut() {
    let server = outpost().args(&["--log-level", "debug"]).start().await;
    let link = FaultyLink::to(server.address()).await;
    let remote = RemoteExecutor::connect(link.url(), RemoteOptions::default());
    let remote = remote.await.unwrap();
    let changes = || server.stderr().matches("session lease changed").count();
    // Cuts the link after the request took effect and before its response.
    let cut = async || {
        let before = changes();
        link.stall(Direction::ToClient);
        deadline::poll_until("a new lease", || (changes() > before).then_some(())).await;
        link.cut().await;
        link.open();
    };
    let (long, short) = (Duration::from_secs(600), Duration::from_secs(60));
    let set = remote.set_lease(Lease::For(long));
    let ((), set) = tokio::join!(wait_reconnected(&remote, cut()), set);
    assert!(set.is_err(), "the previous lease is unknown");
    let restore = remote.restore_lease(Lease::For(short));
    let ((), restored) = tokio::join!(wait_reconnected(&remote, cut()), restore);
    restored.unwrap();
    let before = remote.set_lease(Lease::For(long)).await.unwrap();
    assert_eq!(before, Lease::For(short));
}
