//! The task that keeps a client connected.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::following::Piece;
use super::{CallError, Delivery, Shared};
use crate::{RpcError, unbase64};

type Answer = oneshot::Sender<Result<Value, CallError>>;
type Sink = SplitSink<WebSocketStream<TcpStream>, Message>;

/// How often a client tries again that could not come back.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// How many events go unacknowledged.
const ACK_EVERY: u64 = 16;

/// One connection, for callers. What waits for an answer is lost with it.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    sink: Arc<AsyncMutex<Sink>>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: i64,
    answers: HashMap<i64, Asked>,
}

/// Who asked.
#[derive(Debug)]
enum Asked {
    Caller(Answer),
    /// A read that catches a process up.
    CatchUp(String),
}

impl Calls {
    pub(super) async fn send(&self, method: &str, params: Value, answer: Answer) -> Result<(), ()> {
        self.ask(method, params, Asked::Caller(answer)).await
    }

    async fn ask(&self, method: &str, params: Value, asked: Asked) -> Result<(), ()> {
        let id = {
            let mut waiting = self.waiting();
            waiting.next += 1;
            let id = waiting.next;
            waiting.answers.insert(id, asked);
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

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However a connection ends, whoever waits for an answer on it hears so.
struct LoseAll(Calls);

impl Drop for LoseAll {
    fn drop(&mut self) {
        self.0.waiting().answers.clear();
    }
}

/// Connects again and again, for ever.
pub(super) async fn keep(shared: Arc<Shared>) {
    loop {
        // Whatever ends it, the next one goes on where this one was.
        let _ = once(&shared).await;
        shared.state().calls = None;
        shared.changed.notify_waiters();
        // sleep: the server takes its time to notice, and nothing tells when
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// One connection, from its handshake to its loss.
async fn once(shared: &Shared) -> Option<()> {
    let address = shared.url.strip_prefix("ws://").unwrap_or(&shared.url);
    let socket = TcpStream::connect(address).await.ok()?;
    socket.set_nodelay(true).ok()?;
    let (socket, _) = client_async("ws://localhost/", socket).await.ok()?;
    let (sink, mut messages) = socket.split();
    let calls = Calls {
        sink: Arc::new(AsyncMutex::new(sink)),
        waiting: Arc::default(),
    };
    let _lost = LoseAll(calls.clone());
    let hello = json!({"id": 0, "method": "initialize", "params": hello(shared)});
    calls.text(hello.to_string()).await.ok()?;
    let resumed = loop {
        match messages.next().await?.ok()? {
            Message::Text(text) => {
                let message: Incoming<'_> = serde_json::from_str(&text).ok()?;
                match message.id {
                    Some(0) => break handshake(shared, &message)?,
                    // A busy process doesn't wait for the handshake to be over.
                    _ => take(shared, &calls, &message).await?,
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
                let message: Incoming<'_> = serde_json::from_str(&text).ok()?;
                take(shared, &calls, &message).await?;
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

fn hello(shared: &Shared) -> Value {
    let state = shared.state();
    let mut params = json!({"clientName": "steadfast", "resumeSessionId": state.session});
    if shared.delivery == Delivery::Acked {
        let seen = state
            .following
            .iter()
            .map(|(id, following)| (id.clone(), following.last.into()));
        params["delivery"] = "acked".into();
        params["resumeFrom"] = Value::Object(seen.collect());
    }
    params
}

/// The answer to `initialize`; whether an earlier session was resumed.
fn handshake(shared: &Shared, message: &Incoming<'_>) -> Option<bool> {
    let result = message.result.map(RawValue::get)?;
    let result: Value = serde_json::from_str(result).ok()?;
    let session = result["sessionId"].as_str()?.to_owned();
    let before = shared.state().session.replace(session.clone());
    if let Some(before) = &before {
        assert_eq!(*before, session, "the session that was resumed");
    }
    Some(before.is_some())
}

/// A message, no further than a client of output needs it.
#[derive(serde::Deserialize)]
struct Incoming<'a> {
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

async fn take(shared: &Shared, calls: &Calls, message: &Incoming<'_>) -> Option<()> {
    if let (Some(method), Some(params)) = (&message.method, &message.params) {
        return event(shared, calls, method, params).await;
    }
    let id = message.id?;
    let asked = calls.waiting().answers.remove(&id);
    let result: Option<Value> = message
        .result
        .and_then(|raw| serde_json::from_str(raw.get()).ok());
    match (asked, result) {
        (Some(Asked::CatchUp(process)), Some(page)) => {
            page_of(shared, calls, &process, &page).await
        }
        (Some(Asked::Caller(answer)), Some(result)) => {
            let _ = answer.send(Ok(result));
            Some(())
        }
        (Some(Asked::Caller(answer)), None) => {
            let error: Value = serde_json::from_str(message.error?.get()).ok()?;
            let error = RpcError::of(&json!({"error": error}));
            let _ = answer.send(Err(CallError::Refused(error)));
            Some(())
        }
        _ => Some(()),
    }
}

async fn event(shared: &Shared, calls: &Calls, method: &str, params: &Params<'_>) -> Option<()> {
    let piece = match method {
        "process/output" => Piece::Output(unbase64(&Value::from(params.chunk.as_deref()?))),
        "process/exited" => Piece::Exited(params.exit_code?),
        "process/closed" => Piece::Closed,
        other => panic!("unexpected notification {other}"),
    };
    let ack = {
        let mut state = shared.state();
        let Some(following) = state.following.get_mut(&*params.process_id) else {
            return Some(());
        };
        if shared.delivery == Delivery::Acked {
            assert_eq!(
                params.seq,
                following.last + 1,
                "acked: no hole, nothing twice"
            );
        }
        following.take(params.seq, piece);
        let due = following.last >= following.acked + ACK_EVERY || following.is_closed();
        (due && shared.delivery == Delivery::Acked).then(|| {
            following.acked = following.last;
            following.last
        })
    };
    shared.changed.notify_waiters();
    if let Some(seq) = ack {
        let ack = json!({"method": "process/ack", "params": {"processId": params.process_id, "seq": seq}});
        calls.text(ack.to_string()).await.ok()?;
    }
    Some(())
}

/// Reads what every process has written meanwhile.
async fn catch_up_all(shared: &Shared, calls: &Calls) -> Option<()> {
    let open: Vec<_> = {
        let state = shared.state();
        let open = state
            .following
            .iter()
            .filter(|(_, following)| !following.is_closed());
        open.map(|(id, following)| (id.clone(), following.last))
            .collect()
    };
    for (id, last) in open {
        catch_up(calls, &id, last).await?;
    }
    Some(())
}

async fn catch_up(calls: &Calls, id: &str, last: u64) -> Option<()> {
    let params = json!({"processId": id, "afterSeq": last});
    let asked = Asked::CatchUp(id.to_owned());
    calls.ask("process/read", params, asked).await.ok()
}

async fn page_of(shared: &Shared, calls: &Calls, id: &str, page: &Value) -> Option<()> {
    let again = {
        let mut state = shared.state();
        let following = state.following.get_mut(id)?;
        for chunk in page["chunks"].as_array()? {
            following.take(
                chunk["seq"].as_u64()?,
                Piece::Output(unbase64(&chunk["chunk"])),
            );
        }
        following.caught_up(
            page["nextSeq"].as_u64()?,
            page["exitCode"].as_i64(),
            page["closed"] == true,
        );
        following.has_hole().then_some(following.last)
    };
    shared.changed.notify_waiters();
    match again {
        Some(last) => catch_up(calls, id, last).await,
        None => Some(()),
    }
}
