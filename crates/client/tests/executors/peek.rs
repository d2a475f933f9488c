//! Inspecting processes of other sessions.

use std::{sync::Arc, time::Duration};

use outpost_client::{Error, Executor, Process, RemoteExecutor, RemoteOptions, Signal, Terminate};

use crate::harness::{InMemory, read_all, sh, soon};

const LONG: Duration = Duration::from_secs(60);

/// Two clients of one server, and a process of the first.
async fn two_clients(dialer: InMemory) -> (RemoteExecutor, RemoteExecutor, Process) {
    let dialer = Arc::new(dialer);
    let first = RemoteExecutor::with_dialer(dialer.clone(), RemoteOptions::default());
    let first = first.await.unwrap();
    let second = RemoteExecutor::with_dialer(dialer, RemoteOptions::default());
    let second = second.await.unwrap();
    // The shell would report a child that was killed by a signal.
    let script = "exec 2>/dev/null; trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.02; done";
    let process = first.start(sh(script).id("p")).await.unwrap();
    (first, second, process)
}

#[tokio::test]
async fn inspect_reads_and_signals_without_affecting_the_client() {
    let (first, second, process) = two_clients(InMemory::as_owner()).await;
    let peek = second.inspect(first.session_id(), "p");
    let page = soon("the first line", peek.read(0, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "ready\n");
    peek.signal(Signal::User1).await.unwrap();
    let page = soon("the last line", peek.read(1, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "caught\n");
    let mut after = 2;
    let exit = loop {
        let page = soon("the exit", peek.read(after, None, LONG))
            .await
            .unwrap();
        after = page.next_seq - 1;
        if page.closed {
            break page.exit;
        }
    };
    assert_eq!(exit.unwrap().code, 5);
    // Its own client gets all output.
    assert_eq!(read_all(&process).await.stdout(), "ready\ncaught\n");
}

#[tokio::test]
async fn inspect_terminates_a_process() {
    let (first, second, process) = two_clients(InMemory::as_owner()).await;
    let peek = second.inspect(first.session_id(), "p");
    let how = Terminate::new().grace(Duration::ZERO).tree();
    assert!(peek.terminate(how).await.unwrap());
    assert_eq!(soon("its end", process.wait()).await.unwrap().code, 137);
    assert!(!peek.terminate(how).await.unwrap());
}

#[tokio::test]
async fn inspecting_the_own_session_needs_no_owner() {
    let (first, _second, _process) = two_clients(InMemory::as_stranger()).await;
    let own = first.inspect(None, "p");
    let page = soon("the first line", own.read(0, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "ready\n");
}

#[tokio::test]
async fn owner_can_end_a_session() {
    let (first, second, _process) = two_clients(InMemory::as_owner()).await;
    let session = first.session_id().unwrap();
    second.end_session(session).await.unwrap();
    let left = second.sessions().await.unwrap();
    assert!(left.iter().all(|entry| entry.session_id != session));
    let unknown = second.end_session(session).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Rejected { code: -32600, .. }),
        "{unknown}"
    );
}

#[tokio::test]
async fn owner_requests_of_others_are_not_sent() {
    let (first, second, _process) = two_clients(InMemory::as_stranger()).await;
    let peek = second.inspect(first.session_id(), "p");
    let refused = peek.read(0, None, Duration::ZERO).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Unsupported {
                capability: "sessionList"
            }
        ),
        "{refused}"
    );
    let session = first.session_id().unwrap();
    assert!(second.end_session(session).await.is_err());
}

#[tokio::test]
async fn server_info_names_the_server() {
    let (first, ..) = two_clients(InMemory::as_owner()).await;
    let info = first.server_info().unwrap();
    assert_eq!(
        (info.name.as_str(), info.version.as_str()),
        ("outpost", env!("CARGO_PKG_VERSION"))
    );
}
