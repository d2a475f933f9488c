//! Tests that a large body streamed to a slow reader takes little memory.

use std::time::Duration;

use outpost_client::{Executor as _, HttpRequest, RemoteExecutor, RemoteOptions, Start};
use outpost_testkit::{ProcStats, deadline, http_test_server};

use crate::outpost;

const GIB: u64 = 1024 * 1024 * 1024;
/// The number of times the reader pauses.
const PAUSES: u64 = 4;
/// A body counts as blocked if the server reads none of it for this long.
const QUIET: Duration = Duration::from_millis(300);
/// The memory by which the server or the client may grow: windows, socket buffers, allocator slack.
const MAX_GROWTH_KIB: u64 = 32 * 1024;

/// Waits until the server reads no more of the body.
async fn wait_until_blocked(web: &http_test_server::HttpTestServer) {
    let quiet = async {
        let mut before = web.dots_written();
        loop {
            // sleep: a blocked body produces no event
            tokio::time::sleep(QUIET).await;
            let now = web.dots_written();
            if now == before {
                return;
            }
            before = now;
        }
    };
    deadline::expect_soon("the body to be blocked", quiet).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gibibyte_for_a_slow_reader_uses_bounded_memory() {
    let server = outpost().start().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let length = format!("Content-Length: {GIB}");
        vec![
            http_test_server::head("200 OK", &[&length]),
            http_test_server::ResponseStep::Dots(GIB),
        ]
    })
    .await;
    let remote = RemoteExecutor::connect(&server.urls()[0], RemoteOptions::default()).await;
    let remote = remote.expect("a connection");
    let ours = ProcStats::of(std::process::id().try_into().expect("a number"));
    let request = remote.http(HttpRequest::get(web.url("/")));
    let response = deadline::expect_soon("the response", request).await;
    let mut response = response.expect("a response");
    let before = (server.stats().peak_rss_kib(), ours.peak_rss_kib());
    let mut got: u64 = 0;
    for pause in 1..=PAUSES {
        while got < GIB / PAUSES * pause {
            let piece = deadline::expect_soon("a piece", response.body.next()).await;
            let piece = piece.expect("more output").expect("no failure");
            assert!(piece.iter().all(|byte| *byte == b'.'));
            got += piece.len() as u64;
        }
        wait_until_blocked(&web).await;
        // A process on the same connection stays usable.
        let process = remote.start(Start::new(["cat"]).cwd("/").stdin()).await;
        let process = process.expect("a process");
        process.write("x").await.expect("written");
        let mut events = process.events();
        deadline::expect_soon("the echo", events.next()).await;
    }
    assert!(response.body.next().await.is_none());
    assert_eq!(got, GIB);
    let grown = server.stats().peak_rss_kib() - before.0;
    assert!(grown < MAX_GROWTH_KIB, "the server grew by {grown} KiB");
    let grown = ours.peak_rss_kib() - before.1;
    assert!(grown < MAX_GROWTH_KIB, "the client grew by {grown} KiB");
    remote.close().await.expect("a clean exit");
}
