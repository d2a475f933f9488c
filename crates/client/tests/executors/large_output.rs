//! Large output.

use outpost_client::Event;

use crate::harness::{on_every_executor, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn hundred_megabytes_arrive_complete() {
    const TOTAL: usize = 100_000_000;
    on_every_executor(async |executor| {
        let process = executor
            .start(sh(&format!("head -c {TOTAL} /dev/zero")))
            .await
            .unwrap();
        let mut events = process.events();
        let mut received = 0;
        while let Some(event) = soon("an event", events.next()).await {
            if let Event::Output { bytes, .. } = event {
                received += bytes.len();
            }
        }
        assert_eq!(received, TOTAL);
    })
    .await;
}
