//! Captures that several starts wait for, or that are cancelled.

use std::pin::pin;

use outpost_engine::{Limits, StartError, Terminated};
use outpost_types::StartParams;
use tokio::time::timeout;

use super::{Fixture, Home, content};
use crate::owner::{TIMEOUT, is_alive, until};

/// A profile that waits for a line in the FIFO `go`, after it has written its pid.
const WAITING: &str = "echo $$ >>~/pids; read -r line <~/go; export STATE=$line";

/// A home directory with that profile.
fn waiting_home() -> Home {
    let home = Home::new(WAITING);
    let made = std::process::Command::new("mkfifo")
        .arg(home.path().join("go"))
        .status();
    assert!(made.expect("run mkfifo").success());
    home
}

/// A fixture whose captures last as long as they want, so that only a cancellation ends them.
fn patient_fixture() -> Fixture {
    Fixture::with_limits(Limits {
        shell_snapshot_timeout: 10 * TIMEOUT,
        ..Limits::default()
    })
}

/// Lets the profile go on.
async fn release(home: &Home) {
    let go = home.path().join("go");
    let write = tokio::task::spawn_blocking(move || std::fs::write(go, "state\n"));
    write.await.expect("no panic").expect("write");
}

fn named(id: &str, params: StartParams) -> StartParams {
    StartParams {
        process_id: id.to_owned(),
        ..params
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_starts_share_a_capture() {
    let home = waiting_home();
    let fixture = Fixture::new();
    let start = |id: &str| fixture.output(named(id, home.bash("echo $STATE")));
    let (first, second, third, ()) =
        tokio::join!(start("1"), start("2"), start("3"), release(&home));
    assert_eq!([first, second, third], ["state\n"; 3]);
    assert_eq!(home.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_cancels_the_capture() {
    let home = waiting_home();
    let fixture = patient_fixture();
    let mut first = pin!(fixture.start(named("first", home.bash("echo $STATE"))));
    let pids = home.path().join("pids");
    let pid: u32 = tokio::select! {
        _ = &mut first => panic!("the answer waits for the capture"),
        pid = content(pids.clone()) => pid.parse().expect("a pid"),
    };
    let mut second = pin!(fixture.output(named("second", home.bash("echo $STATE"))));
    tokio::select! {
        biased;
        _ = &mut second => panic!("it waits for the capture of the first"),
        () = std::future::ready(()) => {}
    }
    let listed = fixture.session.list();
    assert_eq!(listed.len(), 2, "the capture is no process of the client");
    let terminated = fixture.session.terminate("first", None, false);
    assert_eq!(terminated, Terminated::Running);
    let result = timeout(TIMEOUT, first).await.expect("no timeout");
    assert!(matches!(result, Err(StartError::Cancelled(id)) if id == "first"));
    until("the capture is killed", || !is_alive(pid)).await;
    // The second one captures.
    let (output, ()) = tokio::join!(second, release(&home));
    assert_eq!(output, "state\n");
    assert_eq!(home.runs(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_the_session_cancels_the_capture() {
    for shuts_down in [false, true] {
        let home = waiting_home();
        let fixture = patient_fixture();
        let mut start = pin!(fixture.start(home.bash("true")));
        let pid: u32 = tokio::select! {
            _ = &mut start => panic!("the answer waits for the capture"),
            pid = content(home.path().join("pids")) => pid.parse().expect("a pid"),
        };
        if shuts_down {
            let both = async { tokio::join!(fixture.engine.shutdown(TIMEOUT), &mut start) };
            let (ended, result) = timeout(TIMEOUT, both).await.expect("no timeout");
            assert!(ended && result.is_err());
            assert!(!is_alive(pid), "shutdown waits for it");
        } else {
            let both =
                async { tokio::join!(fixture.engine.end_session(&fixture.session), &mut start) };
            let (alive, result) = timeout(TIMEOUT, both).await.expect("no timeout");
            assert!(alive.is_empty() && matches!(result, Err(StartError::SessionEnded)));
            assert!(!is_alive(pid), "the end of the session waits for it");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_start_ends_the_capture() {
    let home = waiting_home();
    let fixture = patient_fixture();
    let pid: u32 = {
        let mut start = pin!(fixture.start(home.bash("true")));
        tokio::select! {
            _ = &mut start => panic!("the answer waits for the capture"),
            pid = content(home.path().join("pids")) => pid.parse().expect("a pid"),
        }
    };
    until("the capture is killed", || !is_alive(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_the_profile_stay_until_the_session_ends() {
    let home = Home::new("(exec sleep 1000) & export AGENT=$!");
    let fixture = Fixture::new();
    let pid: u32 = fixture
        .output(home.bash("echo $AGENT"))
        .await
        .trim()
        .parse()
        .expect("a pid");
    assert!(is_alive(pid));
    assert!(fixture.session.has_processes());
    fixture.engine.end_session(&fixture.session).await;
    assert!(!is_alive(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_counts_as_a_process() {
    let home = Home::new("echo noise");
    let fixture = Fixture::with_limits(Limits {
        max_processes: 1,
        ..Limits::default()
    });
    // There is a place for the command only.
    let outcome = fixture.run(home.bash("echo command")).await;
    super::assert_plain(&outcome, "command");
    let free = Fixture::with_limits(Limits {
        max_processes: 2,
        ..Limits::default()
    });
    assert_eq!(free.output(home.bash("echo command")).await, "command\n");
}
