//! Much output, and what it takes.

use outpost_client::Event;

use crate::places::{on_every_place, sh, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_arrive_whole() {
    const TOTAL: usize = 100_000_000;
    on_every_place(async |place| {
        let process = place
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
