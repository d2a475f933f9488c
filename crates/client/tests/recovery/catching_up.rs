//! Reading missed events after a reconnect.

use std::time::Duration;

use outpost_client::ConnectionState;
use serde_json::json;

use crate::sim::{Sim, full_server, old_server, page, soon, started, summarize, summary};

#[tokio::test(start_paused = true)]
async fn each_process_catches_up_after_its_last_event() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let first = started(&remote, &mut connection, "a").await;
    let second = started(&remote, &mut connection, "b").await;
    connection.output("a", 1, b"one").await;
    connection.output("a", 2, b"two").await;
    let mut wake = first.wake();
    soon("two events", wake.wait_for(|last| *last == 2))
        .await
        .unwrap();
    drop(connection);
    let (mut connection, params) = sim.resumed(old_server()).await;
    assert!(
        params["resumeFrom"].is_null(),
        "the server does not support it"
    );
    // Pushed after the events that were written to the old connection.
    connection.output("a", 5, b"five").await;
    for _ in 0..2 {
        let read = connection.expect_request("process/read").await;
        if read["params"]["processId"] == "a" {
            assert_eq!(read["params"]["afterSeq"], 2);
            let all = page(&[(3, "three"), (4, "four"), (5, "five")], 6);
            connection.respond(&read, all).await;
        } else {
            assert_eq!(read["params"]["afterSeq"], 0);
            // It has exited meanwhile. The page does not tell the number of the exit.
            let mut all = page(&[(1, "uno"), (3, "tres")], 5);
            all["exited"] = json!(true);
            all["exitCode"] = json!(3);
            all["closed"] = json!(true);
            connection.respond(&read, all).await;
        }
    }
    connection.output("a", 5, b"again").await;
    connection.exited("a", 6, 0).await;
    connection.closed("a", 7).await;
    assert_eq!(
        summarize(&first).await,
        [
            "1 one", "2 two", "3 three", "4 four", "5 five", "6 exit 0", "7 closed"
        ]
    );
    assert_eq!(
        summarize(&second).await,
        ["1 uno", "2 exit 3", "3 tres", "4 closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn lost_output_fails_only_its_process() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let gapped = started(&remote, &mut connection, "gapped").await;
    let fine = started(&remote, &mut connection, "fine").await;
    connection.output("gapped", 1, b"one").await;
    let mut wake = gapped.wake();
    soon("an event", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    drop(connection);
    let (mut connection, _) = sim.resumed(old_server()).await;
    for _ in 0..2 {
        let read = connection.expect_request("process/read").await;
        match read["params"]["processId"].as_str() {
            Some("gapped") => connection.respond(&read, page(&[(9, "nine")], 10)).await,
            _ => connection.respond(&read, page(&[(1, "one")], 2)).await,
        }
    }
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "gapped");
    connection.respond(&end, json!({"running": true})).await;
    assert_eq!(
        summarize(&gapped).await,
        [
            "1 one",
            "output of process gapped is lost: events 2 to 8 are no longer retained"
        ]
    );
    let error = gapped.wait().await.unwrap_err();
    assert!(matches!(
        error,
        outpost_client::Error::Gap { from: 2, to: 8, .. }
    ));
    connection.exited("fine", 2, 0).await;
    connection.closed("fine", 3).await;
    assert_eq!(summarize(&fine).await, ["1 one", "2 exit 0", "3 closed"]);
    assert_eq!(
        *remote.connection_state().borrow(),
        ConnectionState::Connected
    );
}

#[tokio::test(start_paused = true)]
async fn forgotten_process_fails_alone() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let (mut connection, _) = sim.resumed(old_server()).await;
    let read = connection.expect_request("process/read").await;
    connection
        .reject(&read, -32600, "unknown process id p")
        .await;
    assert_eq!(summarize(&process).await, ["unknown process id p (-32600)"]);
    let end = connection.expect_request("process/terminate").await;
    connection.respond(&end, json!({"running": false})).await;
    let mut state = remote.connection_state();
    soon(
        "the connection",
        state.wait_for(|now| *now == ConnectionState::Connected),
    )
    .await
    .unwrap();
}

/// More chunks than fit the transport.
const FLOOD: u64 = 64;

#[tokio::test(start_paused = true)]
async fn output_during_the_handshake_does_not_block_it() {
    for initialize_result in [full_server(), old_server()] {
        let mut sim = Sim::new();
        let (remote, mut connection) = sim.connect(initialize_result.clone()).await;
        let process = started(&remote, &mut connection, "p").await;
        let mut events = process.events();
        drop(connection);
        let mut connection = sim.accept().await;
        let hello = connection.expect_request("initialize").await;
        let chunk = vec![b'x'; 32 * 1024];
        // With pushed delivery, the first events went to the old connection.
        let first = if initialize_result == old_server() {
            3
        } else {
            1
        };
        let flood = async {
            for seq in first..=FLOOD {
                connection.output("p", seq, &chunk).await;
            }
            connection.respond(&hello, initialize_result.clone()).await;
            connection.expect_notification("initialized").await;
            if initialize_result == old_server() {
                let read = connection.expect_request("process/read").await;
                assert_eq!(read["params"]["afterSeq"], 0);
                connection
                    .respond(&read, page(&[(1, "a"), (2, "b")], 3))
                    .await;
            }
            connection.exited("p", FLOOD + 1, 0).await;
            connection.closed("p", FLOOD + 2).await;
            connection
        };
        let reading = async {
            let mut last = 0;
            while let Some(event) = soon("an event", events.next()).await {
                let number = summary(event);
                let number = number.split(' ').next().and_then(|n| n.parse().ok());
                last += 1;
                assert_eq!(number, Some(last));
            }
            last
        };
        let (_connection, last) = tokio::join!(flood, reading);
        assert_eq!(last, FLOOD + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn gap_is_read_once() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection.output("p", 1, b"one").await;
    connection.output("p", 3, b"three").await;
    let read = connection.expect_request("process/read").await;
    assert_eq!(read["params"]["afterSeq"], 1);
    connection.output("p", 4, b"four").await;
    connection
        .respond(&read, page(&[(2, "two"), (3, "three")], 4))
        .await;
    connection.exited("p", 5, 0).await;
    connection.closed("p", 6).await;
    assert_eq!(
        summarize(&process).await,
        [
            "1 one", "2 two", "3 three", "4 four", "5 exit 0", "6 closed"
        ]
    );
    connection.expect_silence(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn slow_reader_reads_dropped_output_again() {
    let mut sim = Sim::new();
    let mut options = outpost_client::RemoteOptions::default();
    options.limits.push_window_bytes = 100;
    let (remote, mut connection) = sim.connect_with(options, old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut events = process.events();
    let chunk = "x".repeat(60);
    for seq in 1..=5 {
        connection.output("p", seq, chunk.as_bytes()).await;
    }
    let mut wake = process.wake();
    soon("the window to fill", wake.wait_for(|last| *last == 2))
        .await
        .unwrap();
    connection.expect_silence(Duration::from_secs(1)).await;
    let reading = async {
        let mut seen = Vec::new();
        while let Some(event) = soon("an event", events.next()).await {
            seen.push(summary(event).split(' ').next().unwrap().to_owned());
        }
        seen
    };
    let server = async {
        let read = connection.expect_request("process/read").await;
        assert_eq!(read["params"]["afterSeq"], 2);
        let all = page(&[(3, &chunk), (4, &chunk), (5, &chunk)], 6);
        connection.respond(&read, all).await;
        connection.exited("p", 6, 0).await;
        connection.closed("p", 7).await;
        connection
    };
    let (seen, _connection) = tokio::join!(reading, server);
    assert_eq!(seen, ["1", "2", "3", "4", "5", "6", "7"]);
}
