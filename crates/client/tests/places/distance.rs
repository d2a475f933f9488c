//! Processes of other sessions, from a distance.

use std::{sync::Arc, time::Duration};

use outpost_client::{Error, Place, Process, Remote, RemoteOptions, SignalName, Terminate};

use crate::places::{InMemory, sh, soon, story};

const LONG: Duration = Duration::from_secs(60);

/// Two clients of one server, and a process that the first one runs.
async fn two(dialer: InMemory) -> (Remote, Remote, Process) {
    let dialer = Arc::new(dialer);
    let first = Remote::over(dialer.clone(), RemoteOptions::default());
    let first = first.await.unwrap();
    let second = Remote::over(dialer, RemoteOptions::default());
    let second = second.await.unwrap();
    // A shell has words of its own for a child that a signal ended.
    let script = "exec 2>/dev/null; trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.02; done";
    let process = first.start(sh(script).id("p")).await.unwrap();
    (first, second, process)
}

#[tokio::test]
async fn a_process_is_read_and_signalled_beside_its_client() {
    let (first, second, process) = two(InMemory::of_owner()).await;
    let distant = second.distant(first.session_id(), "p");
    let page = soon("the first words", distant.read(0, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "ready\n");
    distant.signal(SignalName::User1).await.unwrap();
    let page = soon("the last words", distant.read(1, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "caught\n");
    let mut after = 2;
    let exit = loop {
        let page = soon("the exit", distant.read(after, None, LONG))
            .await
            .unwrap();
        after = page.next_seq - 1;
        if page.closed {
            break page.exit;
        }
    };
    assert_eq!(exit.unwrap().code, 5);
    // Nobody took anything from its own client.
    assert_eq!(story(&process).await.stdout(), "ready\ncaught\n");
}

#[tokio::test]
async fn a_process_is_ended_from_a_distance() {
    let (first, second, process) = two(InMemory::of_owner()).await;
    let distant = second.distant(first.session_id(), "p");
    let how = Terminate {
        grace: Some(Duration::ZERO),
        tree: true,
    };
    assert!(distant.terminate(how).await.unwrap());
    assert_eq!(soon("its end", process.wait()).await.unwrap().code, 137);
    assert!(!distant.terminate(how).await.unwrap());
}

#[tokio::test]
async fn a_process_of_ones_own_session_needs_no_owner() {
    let (first, _second, _process) = two(InMemory::of_anybody()).await;
    let own = first.distant(None, "p");
    let page = soon("the first words", own.read(0, None, LONG)).await;
    assert_eq!(page.unwrap().chunks[0].bytes, "ready\n");
}

#[tokio::test]
async fn a_whole_session_is_ended() {
    let (first, second, _process) = two(InMemory::of_owner()).await;
    let session = first.session_id().unwrap();
    second.end_session(session).await.unwrap();
    let left = second.sessions().await.unwrap();
    assert!(left.iter().all(|entry| entry.session_id != session));
    let unknown = second.end_session(session).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Refused { code: -32600, .. }),
        "{unknown}"
    );
}

#[tokio::test]
async fn what_is_for_the_owner_is_not_even_asked_by_others() {
    let (first, second, _process) = two(InMemory::of_anybody()).await;
    let distant = second.distant(first.session_id(), "p");
    let refused = distant.read(0, None, Duration::ZERO).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::NotAnnounced {
                capability: "sessionList"
            }
        ),
        "{refused}"
    );
    let session = first.session_id().unwrap();
    assert!(second.end_session(session).await.is_err());
}

#[tokio::test]
async fn who_answers_says_its_name() {
    let (first, ..) = two(InMemory::of_owner()).await;
    let info = first.server_info().unwrap();
    assert_eq!(
        (info.name.as_str(), info.version.as_str()),
        ("outpost", env!("CARGO_PKG_VERSION"))
    );
}
