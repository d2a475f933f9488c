//! A body that is larger than anybody would want to keep, for a reader that takes its time.

use std::time::Duration;

use outpost_client::{HttpRequest, Place as _, Remote, RemoteOptions, Start};
use outpost_testkit::{Vitals, patience, web};

use crate::outpost;

const GIB: u64 = 1024 * 1024 * 1024;
/// How often the reader stops on the way.
const PAUSES: u64 = 4;
/// How long nothing must have come to say that a body is held back.
const QUIET: Duration = Duration::from_millis(300);
/// What either side may need besides: windows, buffers of sockets, and what an allocator keeps.
const MOST_GROWTH_KIB: u64 = 32 * 1024;

/// Waits until nothing more is read of the body.
async fn held_back(web: &web::Web) {
    let quiet = async {
        let mut before = web.flooded();
        loop {
            // sleep: being held back shows in nothing happening
            tokio::time::sleep(QUIET).await;
            let now = web.flooded();
            if now == before {
                return;
            }
            before = now;
        }
    };
    patience::soon("the body to be held back", quiet).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gibibyte_for_a_slow_reader_takes_no_memory_and_nobodys_time() {
    let server = outpost().start().await;
    let web = web::Web::start(|_| {
        let length = format!("Content-Length: {GIB}");
        vec![web::head("200 OK", &[&length]), web::Say::Dots(GIB)]
    })
    .await;
    let remote = Remote::connect(&server.urls()[0], RemoteOptions::default()).await;
    let remote = remote.expect("a connection");
    let ours = Vitals::of(std::process::id().try_into().expect("a number"));
    let mut response = remote
        .http(HttpRequest::get(web.url("/")))
        .await
        .expect("a response");
    let before = (server.vitals().peak_rss_kib(), ours.peak_rss_kib());
    let mut got: u64 = 0;
    for pause in 1..=PAUSES {
        while got < GIB / PAUSES * pause {
            let piece = patience::soon("a piece", response.body.next()).await;
            let piece = piece.expect("more of it").expect("no failure");
            assert!(piece.iter().all(|byte| *byte == b'.'));
            got += piece.len() as u64;
        }
        held_back(&web).await;
        // Somebody types meanwhile.
        let process = remote.start(Start::new(["cat"]).cwd("/").stdin()).await;
        let process = process.expect("a process");
        process.write("x").await.expect("it is written");
        let mut events = process.events();
        patience::soon("the echo", events.next()).await;
    }
    assert!(response.body.next().await.is_none());
    assert_eq!(got, GIB);
    let grown = server.vitals().peak_rss_kib() - before.0;
    assert!(grown < MOST_GROWTH_KIB, "the server grew by {grown} KiB");
    let grown = ours.peak_rss_kib() - before.1;
    assert!(grown < MOST_GROWTH_KIB, "the client grew by {grown} KiB");
    remote.close().await.expect("a good end");
}
