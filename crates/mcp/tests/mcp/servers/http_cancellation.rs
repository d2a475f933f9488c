//! Cancellation of calls to HTTP servers: by notification up to MCP 2025-11-25, and by closing the
//! response stream since then.

use std::{pin::pin, sync::Arc};

use outpost_mcp::{Limits, ServerPool};
use outpost_testkit::deadline;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use super::{
    cancellation::{LONG, cancel_call, long},
    harness::{call, in_each_environment, soon, text},
    http::HttpServer,
};

/// A TCP proxy that records the requests to a server.
struct RecordingProxy {
    url: String,
    recording: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl RecordingProxy {
    async fn start(server: &HttpServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let recording = Arc::new(Mutex::new(Vec::new()));
        let (port, shared) = (server.port, Arc::clone(&recording));
        let task = tokio::spawn(async move {
            // Dropped with this task.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                connections.spawn(forward(client, server, Arc::clone(&shared)));
            }
        });
        RecordingProxy {
            url,
            recording,
            task,
        }
    }

    /// Returns all messages to the server.
    fn messages(&self) -> Vec<Value> {
        let recording = self.recording.lock();
        let text = String::from_utf8_lossy(&recording);
        let starts = text.match_indices("{\"jsonrpc\"");
        let messages = starts.filter_map(|(at, _)| {
            let mut rest = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            rest.next()?.ok()
        });
        messages.collect()
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(client: TcpStream, server: TcpStream, recording: Arc<Mutex<Vec<u8>>>) {
    let (mut client_read, mut client_write) = client.into_split();
    let (mut server_read, mut server_write) = server.into_split();
    let requests = async {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = client_read.read(&mut buffer).await {
            recording.lock().extend_from_slice(&buffer[..read]);
            server_write.write_all(&buffer[..read]).await?;
        }
        server_write.shutdown().await
    };
    let responses = async {
        let _ = copy(&mut server_read, &mut client_write).await;
        client_write.shutdown().await
    };
    let _ = tokio::join!(requests, responses);
}

#[tokio::test]
async fn node_server_receives_the_cancellation() {
    in_each_environment(async |environment| {
        let server = HttpServer::on_node().await;
        let proxy = RecordingProxy::start(&server).await;
        let pool = environment.one(&json!({"url": proxy.url}), &Limits::default());
        soon("startup", pool.wait_started()).await;
        cancel_call(&pool, LONG, long(), || ()).await;
        let sent = |method: &'static str| {
            let messages = proxy.messages().into_iter();
            messages
                .filter(|message| message["method"] == method)
                .collect()
        };
        let cancelled: Vec<Value> = deadline::poll_until("the cancellation", || {
            let cancelled: Vec<Value> = sent("notifications/cancelled");
            (!cancelled.is_empty()).then_some(cancelled)
        })
        .await;
        let calls: Vec<Value> = sent("tools/call");
        assert_eq!(
            (calls.len(), cancelled.len()),
            (1, 1),
            "{calls:?} {cancelled:?}"
        );
        assert_eq!(cancelled[0]["params"]["requestId"], calls[0]["id"]);
        let sum = call(&pool, "get-sum", json!({"a": 2, "b": 3})).await;
        assert_eq!(text(&sum.unwrap()), "The sum of 2 and 3 is 5.");
        soon("close", pool.close()).await;
    })
    .await;
}

/// Waits until the server reports `count` cancelled calls.
async fn wait_cancelled(pool: &ServerPool, count: usize) {
    let reached = async {
        loop {
            let cancelled = call(pool, "cancelled_request", json!({})).await;
            let cancelled = text(&cancelled.unwrap()).split(',').count();
            assert!(cancelled <= count, "{cancelled} instead of {count}");
            if cancelled == count {
                return;
            }
        }
    };
    soon("the cancellations", reached).await;
}

#[tokio::test]
async fn python_server_cancels_only_dropped_calls() {
    in_each_environment(async |environment| {
        let http = HttpServer::on_python().await;
        let server = json!({"url": http.url, "supports_parallel_tool_calls": true});
        let pool = environment.one(&server, &Limits::default());
        soon("startup", pool.wait_started()).await;
        let about = pool.session("one").await.unwrap().peer_info().unwrap();
        assert_eq!(about.protocol_version.to_string(), "2026-07-28");
        cancel_call(&pool, "wait", json!({}), || ()).await;
        wait_cancelled(&pool, 1).await;

        // Cancel two of three concurrent calls.
        let (sender, mut steps) = mpsc::channel(64);
        let wait = || pool.call("one", "wait", serde_json::Map::new(), Some(&sender));
        let mut last = pin!(wait());
        {
            let mut two = pin!(async { tokio::join!(wait(), wait()) });
            for _ in 0..3 {
                let step = soon("a step of each", async {
                    tokio::select! {
                        response = &mut last => panic!("unexpected response: {response:?}"),
                        response = &mut two => panic!("unexpected response: {response:?}"),
                        step = steps.recv() => step,
                    }
                });
                assert!(step.await.is_some());
            }
        }
        tokio::select! {
            response = &mut last => panic!("cancelled as well: {response:?}"),
            () = wait_cancelled(&pool, 3) => {}
        }
        soon("close", pool.close()).await;
    })
    .await;
}
