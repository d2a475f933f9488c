//! Polling instead of streaming.

use std::time::{Duration, Instant};

use crate::harness::{on_every_executor, sh, soon};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_contiguous() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("seq 1 300000; exit 2")).await.unwrap();
        let mut after = 0;
        let mut bytes = Vec::new();
        let exit = loop {
            let page = soon("a page", process.read(after, Some(10_000), LONG))
                .await
                .unwrap();
            for chunk in &page.chunks {
                assert_eq!(chunk.seq, after + 1, "numbers are contiguous");
                after = chunk.seq;
                bytes.extend_from_slice(&chunk.bytes);
            }
            if page.closed && page.chunks.is_empty() {
                break page.exit.unwrap();
            }
            after = page.next_seq - 1;
        };
        assert_eq!(exit.code, 2);
        assert!(bytes.ends_with(b"\n300000\n"));
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 300_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_waits_for_news_up_to_its_timeout() {
    on_every_executor(async |executor| {
        let process = executor
            .start(sh("read x; echo heard $x").stdin())
            .await
            .unwrap();
        let before = Instant::now();
        let page = process
            .read(0, None, Duration::from_millis(30))
            .await
            .unwrap();
        assert!(page.chunks.is_empty() && page.exit.is_none());
        assert!(before.elapsed() >= Duration::from_millis(30));
        let waiting = process.read(0, None, LONG);
        process.write("this\n").await.unwrap();
        let page = soon("the page", waiting).await.unwrap();
        assert_eq!(page.chunks[0].bytes, "heard this\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wake_holds_the_last_event_number() {
    on_every_executor(async |executor| {
        let process = executor.start(sh("echo x; exit 0")).await.unwrap();
        let mut wake = process.wake();
        soon("the close", wake.wait_for(|last| *last == 3))
            .await
            .unwrap();
        let page = process.read(0, None, Duration::ZERO).await.unwrap();
        assert!(page.closed);
        assert_eq!(page.next_seq, 4);
    })
    .await;
}
