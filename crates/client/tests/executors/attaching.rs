//! Attaching to processes, listing them, and the host they run on.

use outpost_client::{Error, Event, ProcessState};

use crate::harness::{on_every_executor, read_after, read_all, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn attach_replays_retained_events() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("echo one; read x; echo two").stdin().id("f"))
            .await
            .unwrap();
        process.detach();
        let mut events = process.events();
        soon("the first line", events.next()).await.unwrap();
        drop((process, events));
        let found = executor.attach("f", 0).await.unwrap();
        found.write("\n").await.unwrap();
        let log = read_all(&found).await;
        assert_eq!(log.stdout(), "one\ntwo\n");
        // The executor retains a closed process without a handle.
        drop(found);
        let found = executor.attach("f", 1).await.unwrap();
        let mut events = found.events_after(1);
        assert_eq!(read_after(&mut events, 1).await.stdout(), "two\n");
        // After the exit, the exit code is still known.
        drop((found, events));
        let mut found = executor.attach("f", 3).await.unwrap();
        assert_eq!(soon("the exit", found.wait()).await.unwrap().code, 0);
        let mut events = found.events_after(3);
        assert!(read_after(&mut events, 3).await.closed);
        // After the close, or beyond it.
        for after in [4, 5, 1000] {
            drop((found, events));
            found = executor.attach("f", after).await.unwrap();
            assert_eq!(soon("the exit", found.wait()).await.unwrap().code, 0);
            events = found.events();
            let mut rest = Vec::new();
            while let Some(event) = soon("an event", events.next()).await {
                rest.push(event);
            }
            assert!(
                matches!(
                    rest[..],
                    [Event::Exited { code: 0, .. }, Event::Closed { seq: 4 }]
                ),
                "{rest:?}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_to_unknown_process_fails() {
    on_every_executor(async |executor| {
        let refused = executor.attach("unknown", 0).await.unwrap_err();
        assert!(matches!(refused, Error::Rejected { code: -32600, .. }));
        assert_eq!(refused.to_string(), "unknown process id unknown (-32600)");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_are_listed() {
    on_every_executor(async |executor| {
        let first = executor
            .start(sh("exec sleep 600").id("a").metadata("for", "unknown"))
            .await
            .unwrap();
        let second = executor.start(sh("exit 3").id("b")).await.unwrap();
        read_all(&second).await;
        let mut all = executor.processes().await.unwrap();
        all.sort_by(|a, b| a.process_id.cmp(&b.process_id));
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].state, ProcessState::Running);
        assert_eq!(all[0].argv[2], "exec sleep 600");
        assert_eq!(all[0].cwd.to_string(), "file:///tmp");
        assert_eq!(all[1].state, ProcessState::Closed);
        assert_eq!(all[1].exit_code, Some(3));
        assert_eq!(all[1].next_seq, 3);
        drop(first);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relative_directory_starts_at_the_executors() {
    on_every_executor(async |executor| {
        let info = executor.environment().await.unwrap();
        assert_eq!(info.platform_os.as_deref(), Some("linux"));
        let start = outpost_client::Start::new(["/bin/pwd"]);
        let process = executor.start(start).await.unwrap();
        let cwd = read_all(&process).await.stdout();
        assert_eq!(
            format!("file://{}", cwd.trim()),
            info.cwd.unwrap().to_string()
        );
        let start = outpost_client::Start::new(["/bin/pwd"]).cwd("..");
        let above = read_all(&executor.start(start).await.unwrap())
            .await
            .stdout();
        let parent = std::path::Path::new(cwd.trim()).parent().unwrap();
        assert_eq!(above, format!("{}\n", parent.display()));
    })
    .await;
}
