//! The events of a process.

use std::time::Duration;

use outpost_client::{Event, Stream};
use tokio::io::AsyncReadExt;

use crate::harness::{on_every_executor, read_after, read_all, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn output_exit_and_close_arrive_in_order() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("printf out; printf err >&2; exit 7").id("p1"))
            .await
            .unwrap();
        assert_eq!(process.id(), "p1");
        let log = read_all(&process).await;
        assert_eq!(log.stdout, b"out");
        assert_eq!(log.stderr, b"err");
        assert_eq!(log.exit, Some(7));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_reader_gets_all_events() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("echo one; echo two; exit 4"))
            .await
            .unwrap();
        let first = read_all(&process).await;
        let second = read_all(&process).await;
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
async fn two_readers_get_the_same_events() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("seq 1 50000")).await.unwrap();
        let (mut a, mut b) = (process.events(), process.events());
        let (a, b) = tokio::join!(read_after(&mut a, 0), read_after(&mut b, 0));
        assert_eq!(a.stdout, b.stdout);
        assert_eq!(a.stdout().lines().count(), 50_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_before_the_first_reader_is_kept() {
    on_every_executor(async |executor| {
        // Several windows of output: the process must wait for its reader.
        let process = executor.start(sh("seq 1 1000000")).await.unwrap();
        let mut wake = process.wake();
        soon("some output", wake.wait_for(|last| *last > 3))
            .await
            .unwrap();
        // sleep: there is no event for a process that does not run ahead
        tokio::time::sleep(Duration::from_millis(100)).await;
        let log = read_all(&process).await;
        let lines = log.stdout();
        assert_eq!(lines.lines().count(), 1_000_000);
        assert_eq!(lines.lines().last(), Some("1000000"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_without_a_reader_lets_the_process_run() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("seq 1 2000000; echo end; exit 5"))
            .await
            .unwrap();
        assert_eq!(soon("the exit", process.wait()).await.unwrap().code, 5);
        // The newest output is retained.
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
async fn terminal_output_is_one_stream() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("stty size; echo x >&2").tty())
            .await
            .unwrap();
        let mut events = process.events();
        let first = soon("output", events.next()).await.unwrap();
        assert!(
            matches!(
                &first,
                Event::Output {
                    stream: Stream::Pty,
                    ..
                }
            ),
            "{first:?}"
        );
        let log = read_all(&process).await;
        assert_eq!(log.stdout(), "24 80\r\nx\r\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdout_and_stderr_can_be_read_separately() {
    on_every_executor(async |executor| {
        let process = executor
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
async fn output_of_a_grandchild_follows_the_exit() {
    on_every_executor(async |executor| {
        let folder = tempfile::tempdir().unwrap();
        let script = "mkfifo go; (read x < go; echo late) & echo early; exit 0";
        let process = executor.start(sh(script).cwd(folder.path())).await.unwrap();
        assert_eq!(soon("the exit", process.wait()).await.unwrap().code, 0);
        assert!(!process.terminate().await.unwrap());
        let page = process.read(0, None, Duration::ZERO).await.unwrap();
        assert!(!page.closed, "the grandchild holds its output");
        let go = executor
            .start(sh("echo > go").cwd(folder.path()))
            .await
            .unwrap();
        assert_eq!(read_all(&go).await.exit, Some(0));
        let mut events = process.events();
        let mut kinds = Vec::new();
        while let Some(event) = soon("an event", events.next()).await {
            kinds.push(match event {
                Event::Output { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
                Event::Exited { .. } => "exited".to_owned(),
                Event::Closed { .. } => "closed".to_owned(),
                Event::Failed { error } => error.to_string(),
            });
        }
        assert_eq!(kinds, ["early\n", "exited", "late\n", "closed"]);
    })
    .await;
}
