//! What is heard of a process.

use std::time::Duration;

use outpost_client::{Event, StreamName};
use tokio::io::AsyncReadExt;

use crate::places::{on_every_place, sh, soon, story, told};

#[tokio::test(flavor = "multi_thread")]
async fn output_exit_and_close_come_in_order() {
    on_every_place(async |place| {
        let process = place
            .start(sh("printf out; printf err >&2; exit 7").id("p1"))
            .await
            .unwrap();
        assert_eq!(process.id(), "p1");
        let told = story(&process).await;
        assert_eq!(told.stdout, b"out");
        assert_eq!(told.stderr, b"err");
        assert_eq!(told.exit, Some(7));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_hears_it_all_again() {
    on_every_place(async |place| {
        let process = place.start(sh("echo one; echo two; exit 4")).await.unwrap();
        let first = story(&process).await;
        let second = story(&process).await;
        assert_eq!(first.stdout, second.stdout);
        assert_eq!(second.exit, Some(4));
        let mut rest = process.events_after(1);
        let Some(event) = soon("an event", rest.next()).await else {
            panic!("there is more than one event");
        };
        assert!(!matches!(event, Event::Output { seq: 1, .. }), "{event:?}");
        assert_eq!(process.wait().await.unwrap().code, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_readers_hear_the_same() {
    on_every_place(async |place| {
        let process = place.start(sh("seq 1 50000")).await.unwrap();
        let (mut a, mut b) = (process.events(), process.events());
        let (a, b) = tokio::join!(told(&mut a, 0), told(&mut b, 0));
        assert_eq!(a.stdout, b.stdout);
        assert_eq!(a.stdout().lines().count(), 50_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_before_the_first_reader_comes() {
    on_every_place(async |place| {
        // Several windows of output; it has to wait for its reader.
        let process = place.start(sh("seq 1 1000000")).await.unwrap();
        let mut wake = process.wake();
        soon("some output", wake.wait_for(|last| *last > 3))
            .await
            .unwrap();
        // sleep: it must not run ahead, and what doesn't happen has no event
        tokio::time::sleep(Duration::from_millis(100)).await;
        let told = story(&process).await;
        let lines = told.stdout();
        assert_eq!(lines.lines().count(), 1_000_000);
        assert_eq!(lines.lines().last(), Some("1000000"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_nobody_reads_can_be_waited_for() {
    on_every_place(async |place| {
        let process = place
            .start(sh("seq 1 2000000; echo end; exit 5"))
            .await
            .unwrap();
        assert_eq!(soon("the exit", process.wait()).await.unwrap().code, 5);
        // What is retained is the newest of it.
        let mut events = process.events();
        let mut newest = Vec::new();
        while let Some(event) = soon("an event", events.next()).await {
            if let Event::Output { bytes, .. } = event {
                newest.extend_from_slice(&bytes);
            }
        }
        assert!(newest.ends_with(b"2000000\nend\n"));
        assert!(newest.len() < 4 * 1024 * 1024, "{}", newest.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_one_stream() {
    on_every_place(async |place| {
        let process = place
            .start(sh("stty size; echo x >&2").tty())
            .await
            .unwrap();
        let mut events = process.events();
        let first = soon("output", events.next()).await.unwrap();
        assert!(
            matches!(
                &first,
                Event::Output {
                    stream: StreamName::Pty,
                    ..
                }
            ),
            "{first:?}"
        );
        let told = story(&process).await;
        assert_eq!(told.stdout(), "24 80\r\nx\r\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_can_be_read_apart() {
    on_every_place(async |place| {
        let process = place
            .start(sh("seq 1 100000; seq 1 100000 | tr 0-9 a-j >&2"))
            .await
            .unwrap();
        let (mut stdout, mut stderr) = (process.stdout(), process.stderr());
        let (mut out, mut err) = (String::new(), String::new());
        let (read_out, read_err) = soon("both streams", async {
            tokio::join!(
                stdout.read_to_string(&mut out),
                stderr.read_to_string(&mut err)
            )
        })
        .await;
        read_out.unwrap();
        read_err.unwrap();
        assert_eq!(out.lines().count(), 100_000);
        assert_eq!(err.lines().last(), Some("baaaaa"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_of_a_grandchild_comes_behind_the_exit() {
    on_every_place(async |place| {
        let folder = tempfile::tempdir().unwrap();
        let script = "mkfifo go; (read x < go; echo late) & echo early; exit 0";
        let process = place.start(sh(script).cwd(folder.path())).await.unwrap();
        assert_eq!(soon("the exit", process.wait()).await.unwrap().code, 0);
        assert!(!process.terminate().await.unwrap());
        let page = process.read(0, None, Duration::ZERO).await.unwrap();
        assert!(!page.closed, "somebody holds its output");
        let go = place
            .start(sh("echo > go").cwd(folder.path()))
            .await
            .unwrap();
        assert_eq!(story(&go).await.exit, Some(0));
        let mut events = process.events();
        let mut kinds = Vec::new();
        while let Some(event) = soon("an event", events.next()).await {
            kinds.push(match event {
                Event::Output { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
                Event::Exited { .. } => "exited".to_owned(),
                Event::Closed { .. } => "closed".to_owned(),
                Event::Failed { message } => message,
            });
        }
        assert_eq!(kinds, ["early\n", "exited", "late\n", "closed"]);
    })
    .await;
}
