//! Limits of a process, and what its exit tells.

use std::time::Duration;

use outpost_client::{EndedBy, Event, ResourceLimits, Start};

use crate::harness::on_every_executor;

#[tokio::test]
async fn limits_hold_and_exits_tell_the_cause() {
    on_every_executor(|executor| async move {
        let limits = ResourceLimits {
            cpu_seconds: Some(1),
            open_files: Some(77),
            ..ResourceLimits::default()
        };
        let start = Start::shell("ulimit -n; while :; do :; done").limits(limits);
        let process = executor.start(start).await.unwrap();
        let exit = process.wait().await.unwrap();
        assert_eq!((exit.code, exit.ended_by), (152, Some(EndedBy::CpuLimit)));
        let usage = exit.usage.expect("it is told");
        assert!((500..60_000).contains(&usage.cpu_ms), "{usage:?}");
        let mut events = process.events();
        while let Some(event) = events.next().await {
            match event {
                Event::Output { bytes, .. } => assert_eq!(bytes, "77\n"),
                Event::Exited { ended_by, .. } => assert_eq!(ended_by, exit.ended_by),
                _ => {}
            }
        }
        let sleep = Start::shell("exec sleep 1000").timeout(Duration::from_millis(100));
        let exit = executor.start(sleep).await.unwrap().wait().await.unwrap();
        assert_eq!(exit.ended_by, Some(EndedBy::Timeout));
    })
    .await;
}

#[tokio::test]
async fn invalid_limit_starts_nothing() {
    on_every_executor(|executor| async move {
        let limits = ResourceLimits {
            processes: Some(0),
            ..ResourceLimits::default()
        };
        let start = Start::shell("exit 0").id("p").limits(limits);
        let error = executor.start(start).await.unwrap_err();
        let message = "limits.processes must be greater than 0 (-32602)";
        assert_eq!(error.to_string(), message);
        assert!(executor.processes().await.unwrap().is_empty());
        let known = executor.environment().await.unwrap().limits;
        // A server in this program does not probe its host.
        assert!(known.is_none_or(|known| known.enforceable.contains(&"openFiles".to_owned())));
    })
    .await;
}
