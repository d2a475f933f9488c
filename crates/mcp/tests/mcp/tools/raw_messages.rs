//! Sessions at the level of lines, with messages that no SDK would send.

use std::sync::Arc;

use outpost_client::{Executor, LocalExecutor, LocalOptions};
use outpost_mcp::serve::{ServeError, ToolServer, ToolServerConfig};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf},
    io::{Lines, duplex, split},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::harness::soon;

struct RawSession {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    task: JoinHandle<Result<(), ServeError>>,
    executor: Arc<dyn Executor>,
}

impl RawSession {
    async fn start() -> Self {
        let executor: Arc<dyn Executor> =
            Arc::new(LocalExecutor::new(LocalOptions::default()).unwrap());
        let provider = Arc::new(Arc::clone(&executor));
        let server = ToolServer::new(provider, ToolServerConfig::default()).await;
        let server = Arc::new(server.unwrap());
        let (ours, theirs) = duplex(64 * 1024);
        let task = tokio::spawn(async move {
            let (read, write) = split(theirs);
            let served = server.serve(read, write, CancellationToken::new()).await;
            server.close().await;
            served
        });
        let (read, write) = split(ours);
        RawSession {
            lines: BufReader::new(read).lines(),
            write,
            task,
            executor,
        }
    }

    /// Starts a session and completes the handshake with a protocol version.
    async fn initialized(version: &str) -> Self {
        let mut session = RawSession::start().await;
        session.initialize(version).await;
        session
    }

    async fn initialize(&mut self, version: &str) {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        });
        self.send(&request(0, "initialize", &params)).await;
        assert_eq!(self.receive().await["result"]["protocolVersion"], version);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(&initialized).await;
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = soon("a response", self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("a line")).unwrap()
    }

    async fn end(mut self) {
        self.write.shutdown().await.unwrap();
        let served = soon("the end", self.task).await.unwrap();
        served.expect("no error");
        self.executor.close().await.unwrap();
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn run(command: &str) -> Value {
    json!({"name": "run_command", "arguments": {"command": command}})
}

#[tokio::test]
async fn invalid_params_differ_from_an_unknown_method() {
    let mut session = RawSession::initialized("2025-06-18").await;
    for (method, params, code) in [
        ("tools/call", json!({}), -32602),
        (
            "tools/call",
            json!({"name": "run_command", "arguments": [1]}),
            -32602,
        ),
        ("tools/nonsense", json!({}), -32601),
    ] {
        session.send(&request(1, method, &params)).await;
        let response = session.receive().await;
        assert_eq!(
            response["error"]["code"], code,
            "{method} {params}: {response}"
        );
        assert_eq!(response["id"], 1);
    }
    session.end().await;
}

#[tokio::test]
async fn messages_before_the_handshake_are_ignored() {
    let params = json!({"requestId": 7});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let mut session = RawSession::start().await;
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        cancelled.clone(),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "no"}}),
    ] {
        session.send(&message).await;
    }
    // A ping doesn't open the session.
    session.send(&request(8, "ping", &json!({}))).await;
    assert_eq!(session.receive().await["id"], 8);
    session.send(&cancelled).await;
    session.initialize("2025-06-18").await;
    session
        .send(&request(1, "tools/call", &run("echo hi")))
        .await;
    let response = session.receive().await;
    assert_eq!(response["result"]["structuredContent"]["stdout"], "hi\n");
    session.end().await;
}

#[tokio::test]
async fn invalid_message_is_rejected_with_its_id_or_null() {
    let mut session = RawSession::initialized("2025-03-26").await;
    for (message, id) in [
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
        session.send(&message).await;
        let response = session.receive().await;
        assert_eq!(response["error"]["code"], -32600, "{message}: {response}");
        assert_eq!(response.get("id"), Some(&id), "{message}: {response}");
    }
    // Invalid notifications and responses get no response.
    session.send(&json!({"method": "odd"})).await;
    session.send(&json!({"id": 1, "result": {}})).await;
    session.send(&request(2, "ping", &json!({}))).await;
    assert_eq!(session.receive().await["id"], 2);
    session.end().await;
}

#[tokio::test]
async fn batch_is_rejected_as_a_whole() {
    let mut session = RawSession::initialized("2025-03-26").await;
    let batch = json!([
        request(1, "ping", &json!({})),
        request(2, "ping", &json!({}))
    ]);
    session.send(&batch).await;
    let response = session.receive().await;
    assert_eq!(response["error"]["code"], -32600, "{response}");
    assert_eq!(
        response["error"]["message"], "JSON-RPC batches are not supported",
        "{response}"
    );
    assert_eq!(response.get("id"), Some(&Value::Null), "{response}");
    session.send(&request(3, "ping", &json!({}))).await;
    assert_eq!(session.receive().await["id"], 3);
    session.end().await;
}

#[tokio::test]
async fn message_before_the_handshake_is_rejected_even_if_the_client_leaves() {
    // An unterminated last line counts.
    for message in ["{}\n", "{}"] {
        let mut session = RawSession::start().await;
        session.write.write_all(message.as_bytes()).await.unwrap();
        session.write.shutdown().await.unwrap();
        let response = session.receive().await;
        assert_eq!(response["error"]["code"], -32600, "{message:?}");
        session.end().await;
    }
}
