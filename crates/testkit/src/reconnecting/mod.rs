//! A client that reconnects: it keeps one session over any number of connections and verifies that
//! the events of every process arrive once and in order.
//!
//! - [`ReconnectingClient`]: the handle
//! - `connection_task`: connects, resumes and acknowledges
//! - `followed_process`: reassembles the events of one process

mod connection_task;
mod followed_process;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::client::{CallError, Client};
use crate::{Event, Start, TestTag, base64, deadline};
use connection_task::run;
use followed_process::FollowedProcess;
pub use followed_process::Outcome;

/// The delivery mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Pushed; missed events are read after a reconnect.
    Push,
    /// Acknowledged.
    Acked,
}

/// A client that reconnects.
pub struct ReconnectingClient {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// The state of a reconnecting client, shared with its task.
struct Shared {
    url: String,
    delivery: Delivery,
    /// The tag of its processes.
    tag: TestTag,
    state: Mutex<State>,
    /// Notified at every event and every change of the connection.
    changed: Notify,
}

/// The part of the state that changes, behind one lock.
#[derive(Default)]
struct State {
    session: Option<String>,
    /// The current connection.
    client: Option<Arc<Client>>,
    processes: HashMap<String, FollowedProcess>,
    connections: u64,
    next_write: u64,
    /// The connection task has panicked.
    failed: bool,
}

impl ReconnectingClient {
    /// Connects, and reconnects until dropped.
    pub async fn connect(url: &str, delivery: Delivery, tag: &TestTag) -> Self {
        let shared = Arc::new(Shared {
            url: url.to_owned(),
            delivery,
            tag: tag.clone(),
            state: Mutex::default(),
            changed: Notify::new(),
        });
        let task = tokio::spawn(run(Arc::clone(&shared)));
        let client = ReconnectingClient { shared, task };
        client
            .until("a first connection", |state| state.client.clone())
            .await;
        client
    }

    /// The number of connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.state().connections
    }

    /// Waits until the connection is lost and everything received on it is processed.
    pub async fn wait_lost(&self) {
        self.until("the loss of the connection", |state| {
            state.client.is_none().then_some(())
        })
        .await;
    }

    /// Calls a method on the current or the next connection.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let client = self
            .until("a connection", |state| state.client.clone())
            .await;
        client.call_or_lost(method, params).await
    }

    /// Starts a process and passes its output to `sink`, in order. A start that was lost with its
    /// connection is retried under the same id.
    pub async fn follow(&self, start: Start, sink: impl FnMut(&[u8]) + Send + 'static) {
        let id = start.id().to_owned();
        let process = FollowedProcess::new(sink);
        self.shared.state().processes.insert(id.clone(), process);
        let params = start.into_params(&self.shared.tag);
        loop {
            match self.call("process/start", params.clone()).await {
                Ok(_) => return,
                Err(CallError::Rejected(error))
                    if error.message == format!("process {id} already exists") =>
                {
                    return;
                }
                Err(CallError::Rejected(error)) => panic!("cannot start {id}: {error:?}"),
                Err(CallError::Lost) => {}
            }
        }
    }

    /// Writes to a process exactly once, with retries.
    pub async fn write(&self, id: &str, bytes: impl AsRef<[u8]>) {
        let number = {
            let mut state = self.shared.state();
            state.next_write += 1;
            state.next_write
        };
        let params =
            json!({"processId": id, "chunk": base64(bytes), "writeId": format!("w{number}")});
        loop {
            match self.call("process/write", params.clone()).await {
                Ok(answer) if answer["status"] == "accepted" => return,
                // The start of the previous connection may be in flight.
                Ok(answer) if answer["status"] == "starting" => {}
                Ok(answer) => panic!("cannot write to {id}: {answer}"),
                Err(CallError::Rejected(error)) => panic!("cannot write to {id}: {error:?}"),
                Err(CallError::Lost) => {}
            }
        }
    }

    /// Waits for `closed` and forgets the process.
    pub async fn closed(&self, id: &str) -> Outcome {
        let acked = self.shared.delivery == Delivery::Acked;
        let outcome = self.until("an event of a process", |state| {
            let process = state.processes.get(id)?;
            let is_done = !acked || process.acked == process.last;
            process.outcome().filter(|_| is_done)
        });
        let outcome = outcome.await;
        self.shared.state().processes.remove(id);
        outcome
    }

    /// Waits until `look` finds something. The deadline is for each change. Panics if the task has
    /// panicked, because nothing reconnects any more.
    async fn until<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.shared.changed.notified();
            let failed = self.shared.state().failed;
            assert!(!failed, "the connection task has panicked");
            if let Some(found) = look(&self.shared.state()) {
                return found;
            }
            deadline::expect_soon(what, changed).await;
        }
    }
}

impl Drop for ReconnectingClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes an event from a connection.
    fn take(&self, process: &str, event: Event) {
        if let Some(process) = self.state().processes.get_mut(process) {
            let in_order = self.delivery == Delivery::Push || event.seq() == process.last + 1;
            assert!(in_order, "acked delivery has no gaps or duplicates");
            process.add(event);
        }
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;

    /// Answers every request, and sends `notification` twice after a start.
    async fn serve(listener: TcpListener, notification: Value) {
        while let Ok((socket, _)) = listener.accept().await {
            let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
            while let Some(Ok(Message::Text(text))) = socket.next().await {
                let message: Value = serde_json::from_str(&text).unwrap();
                let mut answers = Vec::new();
                if let Some(id) = message.get("id") {
                    answers.push(json!({"id": id, "result": {"sessionId": "s"}}));
                }
                if message["method"] == "process/start" {
                    answers.extend([notification.clone(), notification.clone()]);
                }
                for answer in answers {
                    let _ = socket.send(Message::text(answer.to_string())).await;
                }
            }
        }
    }

    /// Follows a process of a server that sends `notification` twice.
    async fn follow(notification: Value) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(serve(listener, notification));
        let client = ReconnectingClient::connect(&url, Delivery::Acked, &TestTag::new()).await;
        client.follow(crate::sh("p", "true"), |_| {}).await;
        client.closed("p").await;
        server.abort();
    }

    #[tokio::test]
    #[should_panic(expected = "the connection task has panicked")]
    async fn duplicate_event_fails_the_client() {
        let params = json!({"processId": "p", "seq": 1, "stream": "stdout", "chunk": ""});
        follow(json!({"method": "process/output", "params": params})).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the connection task has panicked")]
    async fn unknown_notification_fails_the_client() {
        follow(json!({"method": "process/unknown", "params": {"processId": "p", "seq": 1}})).await;
    }
}
