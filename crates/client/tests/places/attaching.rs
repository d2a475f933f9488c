//! Finding processes again, and what it is like where they run.

use outpost_client::{Error, Event, ProcessState};

use crate::places::{on_every_place, sh, soon, story, told};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_found_by_its_name() {
    on_every_place(async |place| {
        let process = place
            .start(sh("echo one; read x; echo two").stdin().id("f"))
            .await
            .unwrap();
        process.detach();
        let mut events = process.events();
        soon("the first line", events.next()).await.unwrap();
        drop((process, events));
        let found = place.attach("f", 0).await.unwrap();
        found.write("\n").await.unwrap();
        let story = story(&found).await;
        assert_eq!(story.stdout(), "one\ntwo\n");
        // Closed, and nobody has a handle: it is still retained where it ran.
        drop(found);
        let found = place.attach("f", 1).await.unwrap();
        let mut events = found.events_after(1);
        assert_eq!(told(&mut events, 1).await.stdout(), "two\n");
        // Behind the exit, it is still known how it ended.
        drop((found, events));
        let mut found = place.attach("f", 3).await.unwrap();
        assert_eq!(soon("the exit", found.wait()).await.unwrap().code, 0);
        let mut events = found.events_after(3);
        assert!(told(&mut events, 3).await.closed);
        // And behind the close, or beyond it.
        for after in [4, 5, 1000] {
            drop((found, events));
            found = place.attach("f", after).await.unwrap();
            assert_eq!(soon("the exit", found.wait()).await.unwrap().code, 0);
            events = found.events();
            let mut told = Vec::new();
            while let Some(event) = soon("an event", events.next()).await {
                told.push(event);
            }
            assert!(
                matches!(
                    told[..],
                    [Event::Exited { code: 0, .. }, Event::Closed { seq: 4 }]
                ),
                "{told:?}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_not_there_is_not_found() {
    on_every_place(async |place| {
        let refused = place.attach("nobody", 0).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { code: -32600, .. }));
        assert_eq!(refused.to_string(), "unknown process id nobody (-32600)");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_are_listed() {
    on_every_place(async |place| {
        let first = place
            .start(sh("exec sleep 600").id("a").metadata("for", "nobody"))
            .await
            .unwrap();
        let second = place.start(sh("exit 3").id("b")).await.unwrap();
        story(&second).await;
        let mut all = place.processes().await.unwrap();
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
async fn a_process_starts_where_its_place_is() {
    on_every_place(async |place| {
        let info = place.environment().await.unwrap();
        assert_eq!(info.platform_os.as_deref(), Some("linux"));
        let start = outpost_client::Start::new(["/bin/pwd"]);
        let process = place.start(start).await.unwrap();
        let cwd = story(&process).await.stdout();
        assert_eq!(
            format!("file://{}", cwd.trim()),
            info.cwd.unwrap().to_string()
        );
        let start = outpost_client::Start::new(["/bin/pwd"]).cwd("..");
        let above = story(&place.start(start).await.unwrap()).await.stdout();
        let parent = std::path::Path::new(cwd.trim()).parent().unwrap();
        assert_eq!(above, format!("{}\n", parent.display()));
    })
    .await;
}
