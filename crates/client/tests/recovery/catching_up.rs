//! What was missed is read, as long as it is there.

use std::time::Duration;

use outpost_client::Standing;
use serde_json::json;

use crate::sim::{Sim, brief, capable, page, released, soon, started, tale};

#[tokio::test(start_paused = true)]
async fn each_process_is_caught_up_from_its_last_number() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let first = started(&remote, &mut line, "a").await;
    let second = started(&remote, &mut line, "b").await;
    line.output("a", 1, b"one").await;
    line.output("a", 2, b"two").await;
    let mut wake = first.wake();
    soon("two events", wake.wait_for(|last| *last == 2))
        .await
        .unwrap();
    drop(line);
    let (mut line, params) = sim.resumed(released()).await;
    assert!(
        params["resumeFrom"].is_null(),
        "only where it is understood"
    );
    // Pushed on from what had been written to the old connection.
    line.output("a", 5, b"five").await;
    for _ in 0..2 {
        let read = line.asked_for("process/read").await;
        if read["params"]["processId"] == "a" {
            assert_eq!(read["params"]["afterSeq"], 2);
            let all = page(&[(3, "three"), (4, "four"), (5, "five")], 6);
            line.answer(&read, all).await;
        } else {
            assert_eq!(read["params"]["afterSeq"], 0);
            // It has ended meanwhile: which number the exit has isn't said.
            let mut all = page(&[(1, "uno"), (3, "tres")], 5);
            all["exited"] = json!(true);
            all["exitCode"] = json!(3);
            all["closed"] = json!(true);
            line.answer(&read, all).await;
        }
    }
    line.output("a", 5, b"again").await;
    line.exited("a", 6, 0).await;
    line.closed("a", 7).await;
    assert_eq!(
        tale(&first).await,
        [
            "1 one", "2 two", "3 three", "4 four", "5 five", "6 exit 0", "7 closed"
        ]
    );
    assert_eq!(
        tale(&second).await,
        ["1 uno", "2 exit 3", "3 tres", "4 closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hole_that_cannot_be_filled_costs_that_process_alone() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let holed = started(&remote, &mut line, "holed").await;
    let fine = started(&remote, &mut line, "fine").await;
    line.output("holed", 1, b"one").await;
    let mut wake = holed.wake();
    soon("an event", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    drop(line);
    let (mut line, _) = sim.resumed(released()).await;
    for _ in 0..2 {
        let read = line.asked_for("process/read").await;
        match read["params"]["processId"].as_str() {
            Some("holed") => line.answer(&read, page(&[(9, "nine")], 10)).await,
            _ => line.answer(&read, page(&[(1, "one")], 2)).await,
        }
    }
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "holed");
    line.answer(&end, json!({"running": true})).await;
    assert_eq!(
        tale(&holed).await,
        [
            "1 one",
            "output of process holed is lost: events 2 to 8 are no longer retained"
        ]
    );
    let error = holed.wait().await.unwrap_err();
    assert!(matches!(
        error,
        outpost_client::Error::Gap { from: 2, to: 8, .. }
    ));
    line.exited("fine", 2, 0).await;
    line.closed("fine", 3).await;
    assert_eq!(tale(&fine).await, ["1 one", "2 exit 0", "3 closed"]);
    assert_eq!(*remote.standing().borrow(), Standing::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_server_forgot_fails_alone() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(line);
    let (mut line, _) = sim.resumed(released()).await;
    let read = line.asked_for("process/read").await;
    line.refuse(&read, -32600, "unknown process id p").await;
    assert_eq!(tale(&process).await, ["unknown process id p (-32600)"]);
    let end = line.asked_for("process/terminate").await;
    line.answer(&end, json!({"running": false})).await;
    let mut standing = remote.standing();
    soon(
        "the connection",
        standing.wait_for(|now| *now == Standing::Connected),
    )
    .await
    .unwrap();
}

/// Much more than fits into the connection at once.
const FLOOD: u64 = 64;

#[tokio::test(start_paused = true)]
async fn a_flood_during_the_handshake_does_not_clog_it() {
    for welcome in [capable(), released()] {
        let mut sim = Sim::new();
        let (remote, mut line) = sim.connect(welcome.clone()).await;
        let process = started(&remote, &mut line, "p").await;
        let mut events = process.events();
        drop(line);
        let mut line = sim.accept().await;
        let hello = line.asked_for("initialize").await;
        let piece = vec![b'x'; 32 * 1024];
        // What was pushed to the old connection last is missing in the one case.
        let first = if welcome == released() { 3 } else { 1 };
        let flood = async {
            for seq in first..=FLOOD {
                line.output("p", seq, &piece).await;
            }
            line.answer(&hello, welcome.clone()).await;
            line.said("initialized").await;
            if welcome == released() {
                let read = line.asked_for("process/read").await;
                assert_eq!(read["params"]["afterSeq"], 0);
                line.answer(&read, page(&[(1, "a"), (2, "b")], 3)).await;
            }
            line.exited("p", FLOOD + 1, 0).await;
            line.closed("p", FLOOD + 2).await;
            line
        };
        let reading = async {
            let mut last = 0;
            while let Some(event) = soon("an event", events.next()).await {
                let number = brief(event);
                let number = number.split(' ').next().and_then(|n| n.parse().ok());
                last += 1;
                assert_eq!(number, Some(last));
            }
            last
        };
        let (_line, last) = tokio::join!(flood, reading);
        assert_eq!(last, FLOOD + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hole_in_the_middle_is_read_once() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    line.output("p", 1, b"one").await;
    line.output("p", 3, b"three").await;
    let read = line.asked_for("process/read").await;
    assert_eq!(read["params"]["afterSeq"], 1);
    line.output("p", 4, b"four").await;
    line.answer(&read, page(&[(2, "two"), (3, "three")], 4))
        .await;
    line.exited("p", 5, 0).await;
    line.closed("p", 6).await;
    assert_eq!(
        tale(&process).await,
        [
            "1 one", "2 two", "3 three", "4 four", "5 exit 0", "6 closed"
        ]
    );
    line.is_quiet_for(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_lags_behind_a_server_that_does_not_wait_reads_it_again() {
    let mut sim = Sim::new();
    let mut options = outpost_client::RemoteOptions::default();
    options.limits.push_window_bytes = 100;
    let (remote, mut line) = sim.connect_with(options, released()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut events = process.events();
    let piece = "x".repeat(60);
    for seq in 1..=5 {
        line.output("p", seq, piece.as_bytes()).await;
    }
    let mut wake = process.wake();
    soon("as much as fits", wake.wait_for(|last| *last == 2))
        .await
        .unwrap();
    line.is_quiet_for(Duration::from_secs(1)).await;
    let reading = async {
        let mut seen = Vec::new();
        while let Some(event) = soon("an event", events.next()).await {
            seen.push(brief(event).split(' ').next().unwrap().to_owned());
        }
        seen
    };
    let server = async {
        let read = line.asked_for("process/read").await;
        assert_eq!(read["params"]["afterSeq"], 2);
        let all = page(&[(3, &piece), (4, &piece), (5, &piece)], 6);
        line.answer(&read, all).await;
        line.exited("p", 6, 0).await;
        line.closed("p", 7).await;
        line
    };
    let (seen, _line) = tokio::join!(reading, server);
    assert_eq!(seen, ["1", "2", "3", "4", "5", "6", "7"]);
}
