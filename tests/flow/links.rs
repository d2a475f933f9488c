//! Connections that break on the way.

use outpost_testkit::{Direction, Goodbye, Link, Start, patience, sh};

use crate::outpost;

#[tokio::test]
async fn a_cut_link_costs_the_connection_and_not_the_process() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.shake_hands().await;
    let file = server.folder().join("done");
    let script = format!("read x; echo $x > {}; exec sleep 1000", file.display());
    client.start(sh("p", &script).stdin()).await;
    client.write("p", "written\n", "w").await;
    link.cut().await;
    assert_eq!(client.goodbye().await, Goodbye::Silent);
    patience::seen("what was written before the cut", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text == "written\n")
    })
    .await;
    assert_eq!(
        server.mark().living().len(),
        2,
        "the server and its process"
    );
    // The way is open for the next.
    let next = server.connect_to(link.url()).await;
    next.shake_hands().await;
    next.run(Start::new("p", &["true"])).await;
}

#[tokio::test]
async fn a_stalled_link_holds_back_what_is_behind_it_and_loses_nothing() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.shake_hands().await;
    client.only_count("p");
    let bytes = 8 * 1024 * 1024;
    link.stall(Direction::ToClient);
    let head = ["head", "-c", &bytes.to_string(), "/dev/zero"];
    client.request_start(Start::new("p", &head)).await;
    let direct = server.client().await;
    for n in 0..10 {
        direct.run(Start::new(&format!("p{n}"), &["true"])).await;
    }
    assert_eq!(client.counted("p").bytes, 0);
    link.open();
    client.counts("p", bytes).await;
    client
        .story_until("p", "the close", |story| story.is_closed())
        .await;
}

#[tokio::test]
async fn a_link_closed_on_the_clients_side_ends_the_connection() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.shake_hands().await;
    link.half_close(Direction::ToServer);
    client.goodbye().await;
}

#[tokio::test]
async fn a_slow_link_gets_everything() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.shake_hands().await;
    link.throttle(Direction::ToClient, 2 * 1024 * 1024);
    let bytes = 1024 * 1024;
    let head = ["head", "-c", &bytes.to_string(), "/dev/zero"];
    let story = client.run(Start::new("p", &head)).await;
    assert_eq!(story.bytes(), bytes);
}
