//! The conversation line by line, as no SDK would hold it.

use std::sync::Arc;

use outpost_client::{Local, LocalOptions, Place};
use outpost_mcp::serve::{Ground, ServeError, Setup, Workbench};
use outpost_testkit::Mark;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf},
    io::{Lines, duplex, split},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::bench::soon;

struct Spoken {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    speaking: JoinHandle<Result<(), ServeError>>,
    place: Arc<dyn Place>,
}

impl Spoken {
    async fn start() -> Self {
        let place: Arc<dyn Place> = Arc::new(Local::new(LocalOptions::default()).unwrap());
        let ground: Arc<dyn Ground> = Arc::new(Arc::clone(&place));
        let bench = Workbench::new(ground, Setup::default()).await.unwrap();
        let (ours, theirs) = duplex(64 * 1024);
        let speaking = tokio::spawn(async move {
            let (read, write) = split(theirs);
            let bench = Arc::new(bench);
            let served = bench.serve(read, write, CancellationToken::new()).await;
            bench.close().await;
            served
        });
        let (read, write) = split(ours);
        Spoken {
            lines: BufReader::new(read).lines(),
            write,
            speaking,
            place,
        }
    }

    /// One that a client of this revision has greeted.
    async fn greeted(revision: &str) -> Self {
        let mut spoken = Spoken::start().await;
        spoken.greet(revision).await;
        spoken
    }

    async fn greet(&mut self, revision: &str) {
        let hello = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "by hand", "version": "1"},
        });
        self.say(&request(0, "initialize", &hello)).await;
        assert_eq!(self.heard().await["result"]["protocolVersion"], revision);
        let greeted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.say(&greeted).await;
    }

    async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn heard(&mut self) -> Value {
        let line = soon("an answer", self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("it speaks")).unwrap()
    }

    async fn end(mut self) {
        self.write.shutdown().await.unwrap();
        let served = soon("the end", self.speaking).await.unwrap();
        served.expect("an orderly end");
        self.place.close().await.unwrap();
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn run(command: &str) -> Value {
    json!({"name": "run_command", "arguments": {"command": command}})
}

#[tokio::test]
async fn params_that_make_no_sense_are_not_an_unknown_method() {
    let mut spoken = Spoken::greeted("2025-06-18").await;
    for (method, params, code) in [
        ("tools/call", json!({}), -32602),
        (
            "tools/call",
            json!({"name": "run_command", "arguments": [1]}),
            -32602,
        ),
        ("tools/nonsense", json!({}), -32601),
    ] {
        spoken.say(&request(1, method, &params)).await;
        let answer = spoken.heard().await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        assert_eq!(answer["id"], 1);
    }
    spoken.end().await;
}

#[tokio::test]
async fn what_is_said_before_the_conversation_has_begun_is_survived() {
    let cancelled = json!({"requestId": 7});
    let off = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
    let mut spoken = Spoken::start().await;
    for stray in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        off.clone(),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "no"}}),
    ] {
        spoken.say(&stray).await;
    }
    // A ping is no beginning either.
    spoken.say(&request(8, "ping", &json!({}))).await;
    assert_eq!(spoken.heard().await["id"], 8);
    spoken.say(&off).await;
    spoken.greet("2025-06-18").await;
    spoken.say(&request(1, "tools/call", &run("echo hi"))).await;
    let answer = spoken.heard().await;
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "hi\n");
    spoken.end().await;
}

#[tokio::test]
async fn what_is_no_message_is_told_so_by_its_id_or_by_none() {
    let mut spoken = Spoken::greeted("2025-03-26").await;
    for (nonsense, id) in [
        (json!({}), Value::Null),
        (json!([]), Value::Null),
        (json!(42), Value::Null),
        (json!({"id": 5, "method": "ping"}), json!(5)),
        (json!({"jsonrpc": "2.0", "id": "x"}), json!("x")),
        (
            json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}),
            Value::Null,
        ),
    ] {
        spoken.say(&nonsense).await;
        let answer = spoken.heard().await;
        assert_eq!(answer["error"]["code"], -32600, "{nonsense}: {answer}");
        assert_eq!(answer.get("id"), Some(&id), "{nonsense}: {answer}");
    }
    // Neither is ever answered, however odd it is.
    spoken.say(&json!({"method": "odd"})).await;
    spoken.say(&json!({"id": 1, "result": {}})).await;
    spoken.say(&request(2, "ping", &json!({}))).await;
    assert_eq!(spoken.heard().await["id"], 2);
    spoken.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_with_one() {
    let mut spoken = Spoken::greeted("2025-03-26").await;
    let batch = json!([
        request(1, "ping", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"nonsense": true},
        request(2, "tools/call", &run("echo hi")),
    ]);
    spoken.say(&batch).await;
    let answers = spoken.heard().await;
    let answers = answers.as_array().expect("a list");
    assert_eq!(answers.len(), 3, "{answers:?}");
    let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of(json!(1))["result"], json!({}));
    assert_eq!(
        of(json!(2))["result"]["structuredContent"]["stdout"],
        "hi\n"
    );
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    // One that is called off has no answer, and the others don't wait for it.
    let mark = Mark::new();
    let long = format!("{}={} exec sleep 1000", Mark::VARIABLE, mark.as_str());
    let batch = json!([
        request(3, "tools/call", &run(&long)),
        request(4, "ping", &json!({})),
    ]);
    spoken.say(&batch).await;
    mark.alive(1).await;
    let off = json!({"requestId": 3});
    let off = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": off});
    spoken.say(&off).await;
    let answers = spoken.heard().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
    assert_eq!(answers[0]["id"], 4);
    mark.gone().await;
    let many: Vec<_> = (0..1000)
        .map(|id| request(id, "ping", &json!({})))
        .collect();
    spoken.say(&Value::Array(many)).await;
    assert_eq!(spoken.heard().await["error"]["code"], -32600);
    spoken.end().await;
}

#[tokio::test]
async fn a_batch_may_call_off_what_is_in_it() {
    let mut spoken = Spoken::greeted("2025-03-26").await;
    let off = json!({"requestId": 1});
    let batch = json!([
        request(1, "tools/call", &run("sleep 1000")),
        request(2, "ping", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": off},
    ]);
    spoken.say(&batch).await;
    let answers = spoken.heard().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
    assert_eq!(answers[0]["id"], 2);
    spoken.end().await;
}

#[tokio::test]
async fn a_batch_with_an_id_that_is_taken_is_refused() {
    let mut spoken = Spoken::greeted("2025-03-26").await;
    let ping = |id| request(id, "ping", &json!({}));
    spoken.say(&json!([ping(1), ping(1)])).await;
    assert_eq!(spoken.heard().await["error"]["code"], -32600);
    let long = request(2, "tools/call", &run("sleep 1000"));
    spoken.say(&json!([long, ping(3)])).await;
    spoken.say(&json!([ping(2)])).await;
    assert_eq!(spoken.heard().await["error"]["code"], -32600);
    let off = json!({"requestId": 2});
    let off = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": off});
    spoken.say(&off).await;
    let answers = spoken.heard().await;
    assert_eq!(answers[0]["id"], 3, "{answers}");
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
    spoken.end().await;
}

#[tokio::test]
async fn who_goes_before_the_conversation_has_begun_is_answered() {
    // Who goes in the middle of a line has said it all the same.
    for said in ["{}\n", "{}"] {
        let mut spoken = Spoken::start().await;
        spoken.write.write_all(said.as_bytes()).await.unwrap();
        spoken.write.shutdown().await.unwrap();
        assert_eq!(spoken.heard().await["error"]["code"], -32600, "{said:?}");
        spoken.end().await;
    }
}
