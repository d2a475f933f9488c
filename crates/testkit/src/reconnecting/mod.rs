//! A client that reconnects: it keeps one session over any number of connections and verifies that
//! the events of every process arrive once and in order.
//!
//! - [`ReconnectingClient`]: the handle
//! - `connection_task`: connects, resumes and reads
//! - `followed_process`: reassembles the events of one process

mod connection_task;
mod followed_process;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use connection_task::{Calls, run};
use followed_process::FollowedProcess;
pub use followed_process::Outcome;

use crate::{RpcError, Start, TestTag, base64, deadline};

/// The delivery mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Pushed; missed events are read after a reconnect.
    Push,
    /// Acknowledged.
    Acked,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The connection was lost; the call may have taken effect.
    Lost,
    /// The server returned an error.
    Rejected(RpcError),
}

/// A client that reconnects.
#[derive(Debug)]
pub struct ReconnectingClient {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    url: String,
    delivery: Delivery,
    /// The tag of its processes.
    tag: TestTag,
    state: Mutex<State>,
    /// Notified at every event and every change of the connection.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    session: Option<String>,
    /// The current connection.
    calls: Option<Calls>,
    processes: std::collections::HashMap<String, FollowedProcess>,
    connections: u64,
    next_write: u64,
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
            .until("a first connection", |state| state.calls.as_ref().map(drop))
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
            state.calls.is_none().then_some(())
        })
        .await;
    }

    /// Calls a method on the current or the next connection.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let calls = self
            .until("a connection", |state| state.calls.clone())
            .await;
        let (sender, receiver) = oneshot::channel();
        if calls.send(method, params, sender).await.is_err() {
            return Err(CallError::Lost);
        }
        deadline::expect_soon(method, receiver)
            .await
            .unwrap_or(Err(CallError::Lost))
    }

    /// Starts a process and passes its output to `sink`, in order. A start that was lost with its
    /// connection is retried under the same id.
    pub async fn follow(&self, start: Start, sink: impl FnMut(&[u8]) + Send + 'static) {
        let id = start.id().to_owned();
        let process = FollowedProcess::new(Box::new(sink));
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
        loop {
            let changed = self.shared.changed.notified();
            {
                let mut state = self.shared.state();
                let outcome = state.processes.get(id).and_then(FollowedProcess::outcome);
                if let Some(outcome) = outcome {
                    state.processes.remove(id);
                    return outcome;
                }
            }
            deadline::expect_soon("an event of a process", changed).await;
        }
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.shared.changed.notified();
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
}
