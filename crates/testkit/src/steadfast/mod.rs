//! A client that comes back: it keeps a session over any number of connections and checks that
//! every process's events arrive once and in order.
//!
//! - [`Steadfast`] is the client, for whoever starts, types and waits
//! - `keeping` is the task that connects, resumes and reads
//! - `following` is what is known of one process; what came out of order waits there

mod following;
mod keeping;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use following::Following;
pub use following::Outcome;
use keeping::{Calls, keep};

use crate::{Mark, RpcError, Start, base64, patience};

/// What counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// What was written; the rest is read after a reconnect.
    Push,
    /// What was acknowledged.
    Acked,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The connection went; nobody knows whether it took effect.
    Lost,
    /// It was refused.
    Refused(RpcError),
}

/// A client that comes back.
#[derive(Debug)]
pub struct Steadfast {
    shared: Arc<Shared>,
    keeping: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    url: String,
    delivery: Delivery,
    /// What everything it starts carries.
    mark: Mark,
    state: Mutex<State>,
    /// Woken at every event and every change of the connection.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    session: Option<String>,
    /// The connection there is.
    calls: Option<Calls>,
    following: std::collections::HashMap<String, Following>,
    connections: u64,
    next_write: u64,
}

impl Steadfast {
    /// Connects, and stays connected until it is dropped.
    pub async fn connect(url: &str, delivery: Delivery, mark: &Mark) -> Self {
        let shared = Arc::new(Shared {
            url: url.to_owned(),
            delivery,
            mark: mark.clone(),
            state: Mutex::default(),
            changed: Notify::new(),
        });
        let keeping = tokio::spawn(keep(Arc::clone(&shared)));
        let steadfast = Steadfast { shared, keeping };
        steadfast
            .until("a first connection", |state| state.calls.as_ref().map(drop))
            .await;
        steadfast
    }

    /// How many connections it took so far.
    pub fn connections(&self) -> u64 {
        self.shared.state().connections
    }

    /// Waits until it knows that its connection is gone, and has taken all that came on it.
    pub async fn lost(&self) {
        self.until("the loss of the connection", |state| {
            state.calls.is_none().then_some(())
        })
        .await;
    }

    /// Calls a method on whichever connection there is, or comes.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let calls = self
            .until("a connection", |state| state.calls.clone())
            .await;
        let (sender, receiver) = oneshot::channel();
        if calls.send(method, params, sender).await.is_err() {
            return Err(CallError::Lost);
        }
        patience::soon(method, receiver)
            .await
            .unwrap_or(Err(CallError::Lost))
    }

    /// Starts a process and hands each run of its output to `sink`, in order. A start whose fate
    /// is unknown is tried again under the same name.
    pub async fn follow(&self, start: Start, sink: impl FnMut(&[u8]) + Send + 'static) {
        let id = start.id().to_owned();
        let following = Following::new(Box::new(sink));
        self.shared.state().following.insert(id.clone(), following);
        let params = start.into_params(&self.shared.mark);
        loop {
            match self.call("process/start", params.clone()).await {
                Ok(_) => return,
                Err(CallError::Refused(error))
                    if error.message == format!("process {id} already exists") =>
                {
                    return;
                }
                Err(CallError::Refused(error)) => panic!("{id} does not start: {error:?}"),
                Err(CallError::Lost) => {}
            }
        }
    }

    /// Types into a process, once, however often it takes.
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
                // A start of the connection before may still be under way.
                Ok(answer) if answer["status"] == "starting" => {}
                Ok(answer) => panic!("{id} takes no input: {answer}"),
                Err(CallError::Refused(error)) => panic!("{id} takes no input: {error:?}"),
                Err(CallError::Lost) => {}
            }
        }
    }

    /// Waits until everything of a process has come, and forgets it.
    pub async fn closed(&self, id: &str) -> Outcome {
        loop {
            let changed = self.shared.changed.notified();
            {
                let mut state = self.shared.state();
                let outcome = state.following.get(id).and_then(Following::outcome);
                if let Some(outcome) = outcome {
                    state.following.remove(id);
                    return outcome;
                }
            }
            patience::soon("more of a process", changed).await;
        }
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.shared.changed.notified();
            if let Some(found) = look(&self.shared.state()) {
                return found;
            }
            patience::soon(what, changed).await;
        }
    }
}

impl Drop for Steadfast {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
