//! What is written, and by whom.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::sim::{Sim, SimLine, capable, soon, started};

/// What the next write brings, still encoded, and is answered.
async fn write(line: &mut SimLine) -> String {
    let request = line.asked_for("process/write").await;
    line.answer(&request, json!({"status": "accepted"})).await;
    let chunk = request["params"]["chunk"].as_str().unwrap_or_default();
    chunk.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_polls_holds_nobody_up() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = line.asked_for("process/write").await;
    let server = async {
        line.answer(&first, json!({"status": "accepted"})).await;
        write(&mut line).await
    };
    let (written, chunk) = soon("the second write", async {
        tokio::join!(process.write("b"), server)
    })
    .await;
    written.unwrap();
    assert_eq!(chunk, "Yg==");
}

#[tokio::test(start_paused = true)]
async fn what_waits_goes_into_one_write() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = line.asked_for("process/write").await;
    for piece in [b"b", b"c", b"d"] {
        stdin.write_all(piece).await.unwrap();
    }
    line.answer(&first, json!({"status": "accepted"})).await;
    let (flushed, chunk) = tokio::join!(stdin.flush(), write(&mut line));
    flushed.unwrap();
    assert_eq!(chunk, "YmNk");
}

#[tokio::test(start_paused = true)]
async fn behind_a_piece_that_was_refused_nothing_is_written() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = line.asked_for("process/write").await;
    stdin.write_all(b"b").await.unwrap();
    let words = "Server overloaded; retry later.";
    line.refuse(&first, -32001, words).await;
    let refused = soon("the refusal", stdin.flush()).await.unwrap_err();
    assert!(refused.to_string().contains(words), "{refused}");
    soon("the same again", stdin.flush()).await.unwrap_err();
    // Others may go on.
    let (written, chunk) = tokio::join!(process.write("c"), write(&mut line));
    written.unwrap();
    assert_eq!(chunk, "Yw==");
}
