//! The task that connects, resumes the session and acknowledges output.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::followed_process::FollowedProcess;
use super::{Delivery, Shared};
use crate::client::{CallError, Client};

/// The delay between connection attempts.
const RETRY_DELAY: Duration = Duration::from_millis(10);
/// Acknowledge after this many events.
const ACK_EVERY: u64 = 16;

/// Tells the waiting callers about a panic of the task.
struct FailOnDrop(Arc<Shared>);

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        self.0.state().failed = true;
        self.0.changed.notify_waiters();
    }
}

/// Reconnects until aborted.
pub(super) async fn run(shared: Arc<Shared>) {
    let _guard = FailOnDrop(Arc::clone(&shared));
    loop {
        run_connection(&shared).await;
        shared.state().client = None;
        shared.changed.notify_waiters();
        // sleep: the server notices a lost connection without an event for us
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Runs one connection from its handshake to its loss. Returns when its reading task has ended, so
/// that no event is processed after the next connection resumes the session. Panics if that task
/// has panicked.
async fn run_connection(shared: &Arc<Shared>) {
    // Weak, because the state holds the client.
    let weak = Arc::downgrade(shared);
    let sink = Box::new(move |process: &str, event| {
        if let Some(shared) = weak.upgrade() {
            shared.take(process, event);
        }
    });
    let client = Client::over_websocket(&shared.url, shared.tag.clone(), Some(sink));
    let Ok(client) = client.await else { return };
    if resume(shared, &client).await.is_none() {
        // A rejected connection stays open.
        return client.cut().await;
    }
    let client = Arc::new(client);
    shared.state().client = Some(Arc::clone(&client));
    shared.state().connections += 1;
    shared.changed.notify_waiters();
    tokio::select! {
        () = client.ended() => {}
        // A connection that can't be written to may still have events to read.
        () = acknowledge(shared, &client) => client.ended().await,
    }
}

/// Performs the handshake and reads missed events.
async fn resume(shared: &Shared, client: &Client) -> Option<()> {
    let result = client.call_or_lost("initialize", initialize_params(shared));
    let result = result.await.ok()?;
    let session = result["sessionId"].as_str()?.to_owned();
    let before = shared.state().session.replace(session.clone());
    send(client, json!({"method": "initialized"})).await?;
    if let Some(before) = before {
        assert_eq!(before, session, "resumed another session");
        if shared.delivery == Delivery::Push {
            catch_up(shared, client).await?;
        }
    }
    Some(())
}

/// Acknowledges events until a message can't be sent.
async fn acknowledge(shared: &Shared, client: &Client) {
    loop {
        let changed = shared.changed.notified();
        let acks = due_acks(shared);
        if !acks.is_empty() {
            shared.changed.notify_waiters();
        }
        for ack in acks {
            if send(client, ack).await.is_none() {
                return;
            }
        }
        changed.await;
    }
}

async fn send(client: &Client, message: Value) -> Option<()> {
    client.try_send_text(&message.to_string()).await.ok()
}

fn initialize_params(shared: &Shared) -> Value {
    let state = shared.state();
    let mut params = json!({"clientName": "reconnecting", "resumeSessionId": state.session});
    if shared.delivery == Delivery::Acked {
        let last = |(id, process): (&String, &FollowedProcess)| (id.clone(), process.last.into());
        params["delivery"] = "acked".into();
        params["resumeFrom"] = Value::Object(state.processes.iter().map(last).collect());
    }
    params
}

fn due_acks(shared: &Shared) -> Vec<Value> {
    if shared.delivery == Delivery::Push {
        return Vec::new();
    }
    let mut state = shared.state();
    let due = state.processes.iter_mut().filter(|(_, process)| {
        let unacked = process.last - process.acked;
        unacked >= ACK_EVERY || (unacked > 0 && process.is_closed())
    });
    due.map(|(id, process)| {
        process.acked = process.last;
        json!({"method": "process/ack", "params": {"processId": id, "seq": process.last}})
    })
    .collect()
}

/// Reads the missed events of every open process.
async fn catch_up(shared: &Shared, client: &Client) -> Option<()> {
    let is_open = |(_, process): &(&String, &FollowedProcess)| !process.is_closed();
    let open = shared
        .state()
        .processes
        .iter()
        .filter(is_open)
        .map(|(id, _)| id.clone())
        .collect::<Vec<_>>();
    for id in open {
        loop {
            let last = shared.state().processes.get(&id)?.last;
            let params = json!({"processId": id, "afterSeq": last});
            let page = match client.call_or_lost("process/read", params).await {
                Ok(page) => page,
                // The start was lost and is repeated.
                Err(CallError::Rejected(_)) => break,
                Err(CallError::Lost) => return None,
            };
            let mut state = shared.state();
            let process = state.processes.get_mut(&id)?;
            process.add_page(&page)?;
            if !process.has_gap() {
                break;
            }
        }
    }
    shared.changed.notify_waiters();
    Some(())
}
