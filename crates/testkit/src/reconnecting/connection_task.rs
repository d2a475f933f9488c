//! The task that connects, resumes and reads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::followed_process::ProcessEvent;
use super::{CallError, Delivery, Shared};
use crate::{RpcError, unbase64};

type ResultSender = oneshot::Sender<Result<Value, CallError>>;
type Sink = SplitSink<WebSocketStream<TcpStream>, Message>;

/// The delay between connection attempts.
const RETRY_DELAY: Duration = Duration::from_millis(10);
/// Acknowledge after this many events.
const ACK_EVERY: u64 = 16;

/// One connection, for callers. Pending calls are lost with it.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    sink: Arc<AsyncMutex<Sink>>,
    pending: Arc<Mutex<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    last_id: i64,
    calls: HashMap<i64, PendingCall>,
}

/// The origin of a call.
#[derive(Debug)]
enum PendingCall {
    Caller(ResultSender),
    /// A read that fetches missed events of a process.
    CatchUp(String),
}

impl Calls {
    pub(super) async fn send(
        &self,
        method: &str,
        params: Value,
        result: ResultSender,
    ) -> Result<(), ()> {
        self.call(method, params, PendingCall::Caller(result)).await
    }

    async fn call(&self, method: &str, params: Value, origin: PendingCall) -> Result<(), ()> {
        let id = {
            let mut pending = self.pending.lock();
            pending.last_id += 1;
            let id = pending.last_id;
            pending.calls.insert(id, origin);
            id
        };
        let message = json!({"id": id, "method": method, "params": params});
        self.text(message.to_string()).await
    }

    async fn text(&self, text: String) -> Result<(), ()> {
        self.sink
            .lock()
            .await
            .send(Message::text(text))
            .await
            .map_err(drop)
    }
}

/// Fails the pending calls of a connection when it ends.
struct FailPending(Calls);

impl Drop for FailPending {
    fn drop(&mut self) {
        self.0.pending.lock().calls.clear();
    }
}

/// Reconnects until aborted.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        // The next connection resumes the session, whatever ended this one.
        let _ = run_connection(&shared).await;
        shared.state().calls = None;
        shared.changed.notify_waiters();
        // sleep: the server notices a lost connection without an event for us
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Runs one connection from its handshake to its loss.
async fn run_connection(shared: &Shared) -> Option<()> {
    let address = shared.url.strip_prefix("ws://").unwrap_or(&shared.url);
    let socket = TcpStream::connect(address).await.ok()?;
    socket.set_nodelay(true).ok()?;
    let (socket, _) = client_async("ws://localhost/", socket).await.ok()?;
    let (sink, mut messages) = socket.split();
    let calls = Calls {
        sink: Arc::new(AsyncMutex::new(sink)),
        pending: Arc::default(),
    };
    let _fail_pending = FailPending(calls.clone());
    let initialize = json!({"id": 0, "method": "initialize", "params": initialize_params(shared)});
    calls.text(initialize.to_string()).await.ok()?;
    let resumed = loop {
        match messages.next().await?.ok()? {
            Message::Text(text) => {
                let message: IncomingMessage<'_> = serde_json::from_str(&text).ok()?;
                match message.id {
                    Some(0) => break handshake(shared, &message)?,
                    // Output may arrive before the response.
                    _ => handle(shared, &calls, &message).await?,
                }
            }
            Message::Close(_) => return None,
            _ => {}
        }
    };
    calls
        .text(json!({"method": "initialized"}).to_string())
        .await
        .ok()?;
    if resumed && shared.delivery == Delivery::Push {
        catch_up_all(shared, &calls).await?;
    }
    shared.state().calls = Some(calls.clone());
    shared.state().connections += 1;
    shared.changed.notify_waiters();
    loop {
        match messages.next().await?.ok()? {
            Message::Text(text) => {
                let message: IncomingMessage<'_> = serde_json::from_str(&text).ok()?;
                handle(shared, &calls, &message).await?;
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

fn initialize_params(shared: &Shared) -> Value {
    let state = shared.state();
    let mut params = json!({"clientName": "reconnecting", "resumeSessionId": state.session});
    if shared.delivery == Delivery::Acked {
        let seen = state
            .processes
            .iter()
            .map(|(id, process)| (id.clone(), process.last.into()));
        params["delivery"] = "acked".into();
        params["resumeFrom"] = Value::Object(seen.collect());
    }
    params
}

/// Handles the response to `initialize`. Returns whether a session was resumed.
fn handshake(shared: &Shared, message: &IncomingMessage<'_>) -> Option<bool> {
    let result = message.result.map(RawValue::get)?;
    let result: Value = serde_json::from_str(result).ok()?;
    let session = result["sessionId"].as_str()?.to_owned();
    let before = shared.state().session.replace(session.clone());
    if let Some(before) = &before {
        assert_eq!(*before, session, "resumed another session");
    }
    Some(before.is_some())
}

/// An incoming message, parsed as far as needed.
#[derive(serde::Deserialize)]
struct IncomingMessage<'a> {
    id: Option<i64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    process_id: Cow<'a, str>,
    seq: u64,
    #[serde(borrow)]
    chunk: Option<Cow<'a, str>>,
    exit_code: Option<i64>,
}

async fn handle(shared: &Shared, calls: &Calls, message: &IncomingMessage<'_>) -> Option<()> {
    if let (Some(method), Some(params)) = (&message.method, &message.params) {
        return handle_event(shared, calls, method, params).await;
    }
    let id = message.id?;
    let origin = calls.pending.lock().calls.remove(&id);
    let result: Option<Value> = message
        .result
        .and_then(|raw| serde_json::from_str(raw.get()).ok());
    match (origin, result) {
        (Some(PendingCall::CatchUp(process)), Some(page)) => {
            add_page(shared, calls, &process, &page).await
        }
        (Some(PendingCall::Caller(sender)), Some(result)) => {
            let _ = sender.send(Ok(result));
            Some(())
        }
        (Some(PendingCall::Caller(sender)), None) => {
            let error: Value = serde_json::from_str(message.error?.get()).ok()?;
            let error = RpcError::parse(&json!({"error": error}));
            let _ = sender.send(Err(CallError::Rejected(error)));
            Some(())
        }
        _ => Some(()),
    }
}

async fn handle_event(
    shared: &Shared,
    calls: &Calls,
    method: &str,
    params: &Params<'_>,
) -> Option<()> {
    let event = match method {
        "process/output" => ProcessEvent::Output(unbase64(&Value::from(params.chunk.as_deref()?))),
        "process/exited" => ProcessEvent::Exited(params.exit_code?),
        "process/closed" => ProcessEvent::Closed,
        other => panic!("unexpected notification {other}"),
    };
    let ack = {
        let mut state = shared.state();
        let Some(process) = state.processes.get_mut(&*params.process_id) else {
            return Some(());
        };
        if shared.delivery == Delivery::Acked {
            assert_eq!(
                params.seq,
                process.last + 1,
                "acked delivery has no gaps or duplicates"
            );
        }
        process.add(params.seq, event);
        let due = process.last >= process.acked + ACK_EVERY || process.is_closed();
        (due && shared.delivery == Delivery::Acked).then(|| {
            process.acked = process.last;
            process.last
        })
    };
    shared.changed.notify_waiters();
    if let Some(seq) = ack {
        let ack = json!({"method": "process/ack", "params": {"processId": params.process_id, "seq": seq}});
        calls.text(ack.to_string()).await.ok()?;
    }
    Some(())
}

/// Reads the missed events of every open process.
async fn catch_up_all(shared: &Shared, calls: &Calls) -> Option<()> {
    let open: Vec<_> = {
        let state = shared.state();
        let open = state
            .processes
            .iter()
            .filter(|(_, process)| !process.is_closed());
        open.map(|(id, process)| (id.clone(), process.last))
            .collect()
    };
    for (id, last) in open {
        catch_up(calls, &id, last).await?;
    }
    Some(())
}

async fn catch_up(calls: &Calls, id: &str, last: u64) -> Option<()> {
    let params = json!({"processId": id, "afterSeq": last});
    let origin = PendingCall::CatchUp(id.to_owned());
    calls.call("process/read", params, origin).await.ok()
}

async fn add_page(shared: &Shared, calls: &Calls, id: &str, page: &Value) -> Option<()> {
    let again = {
        let mut state = shared.state();
        let process = state.processes.get_mut(id)?;
        for chunk in page["chunks"].as_array()? {
            process.add(
                chunk["seq"].as_u64()?,
                ProcessEvent::Output(unbase64(&chunk["chunk"])),
            );
        }
        process.complete_until(
            page["nextSeq"].as_u64()?,
            page["exitCode"].as_i64(),
            page["closed"] == true,
        );
        process.has_gap().then_some(process.last)
    };
    shared.changed.notify_waiters();
    match again {
        Some(last) => catch_up(calls, id, last).await,
        None => Some(()),
    }
}
