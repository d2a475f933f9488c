//! Tests connections that break.

use outpost_testkit::{ConnectionEnd, Direction, FaultyLink, Start, deadline, sh};

use crate::outpost;

#[tokio::test]
async fn cut_link_ends_the_connection_and_not_the_process() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.handshake().await;
    let file = server.dir().join("done");
    let script = format!("read x; echo $x > {}; exec sleep 1000", file.display());
    client.start(sh("p", &script).stdin()).await;
    client.write("p", "written\n", "w").await;
    link.cut().await;
    assert_eq!(client.connection_end().await, ConnectionEnd::Abrupt);
    deadline::poll_until("what was written before the cut", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text == "written\n")
    })
    .await;
    assert_eq!(server.tag().living().len(), 2, "the server and its process");
    // The link accepts the next connection.
    let next = server.connect_to(link.url()).await;
    next.handshake().await;
    next.run(Start::new("p", &["true"])).await;
}

#[tokio::test]
async fn stalled_link_blocks_and_loses_nothing() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.handshake().await;
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
    client.wait_count("p", bytes).await;
    client
        .event_log_until("p", "the close", |log| log.is_closed())
        .await;
}

#[tokio::test]
async fn client_half_close_ends_the_connection() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.handshake().await;
    link.half_close(Direction::ToServer);
    client.connection_end().await;
}

#[tokio::test]
async fn slow_link_receives_everything() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = server.connect_to(link.url()).await;
    client.handshake().await;
    link.throttle(Direction::ToClient, 2 * 1024 * 1024);
    let bytes = 1024 * 1024;
    let head = ["head", "-c", &bytes.to_string(), "/dev/zero"];
    let log = client.run(Start::new("p", &head)).await;
    assert_eq!(log.bytes(), bytes);
}
