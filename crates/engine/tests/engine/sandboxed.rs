//! Starts of sandboxed processes.

use std::pin::pin;

use outpost_engine::{
    Engine, Limits, Peer, Spawner, SpawnerOptions, StartError, Terminated,
    sandbox::{HelperCommand, Level, Sandbox, policy::Policy},
};
use tokio::time::timeout;

use crate::owner::{TIMEOUT, shell};

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_start_does_not_wait_for_its_preparation() {
    // The probe of the host blocks until the FIFO is opened for writing.
    let dir = tempfile::tempdir().expect("create directory");
    let fifo = dir.path().join("release");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("run mkfifo").success());
    let helper = HelperCommand {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), format!("cat {}", fifo.display())],
        ..HelperCommand::default()
    };
    let sandbox = Sandbox::new(helper, Level::Landlock);
    let spawner = Spawner::new(SpawnerOptions::default()).expect("start threads");
    let engine = Engine::with_sandbox(spawner, Some(sandbox), Limits::default());
    let (session, _) = engine
        .open_private_session(Peer::Unverified)
        .expect("open session");
    let mut start = shell("p", "true");
    start.sandbox = Some(Policy::read_only("/".as_ref()));

    let reservation = session.reserve(&start).expect("id is free");
    let mut started = pin!(engine.start(&session, reservation, start.clone()));
    tokio::select! {
        biased;
        _ = &mut started => panic!("preparation takes longer"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(session.terminate("p", None, false), Terminated::Running);
    let result = timeout(TIMEOUT, started).await.expect("no timeout");
    assert!(matches!(result, Err(StartError::Cancelled(id)) if id == "p"));
    assert!(session.reserve(&start).is_ok(), "id is free again");
    let release = std::fs::OpenOptions::new().write(true).open(&fifo);
    drop(release.expect("open FIFO"));
    assert!(engine.shutdown(TIMEOUT).await);
}
