//! One connection: what is asked on it, and what is answered.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use outpost_protocol::{
    FsCloseParams, Method, RpcError, StartParams, encode_notification, encode_request,
};
use outpost_rpc::{Answer, CloseReason, Outbox};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::recovery::{LineNumber, Loss};
use crate::Error;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection was lost first.
    Lost(String),
    /// The server said no.
    Refused(RpcError),
    /// What it said can't be understood.
    Nonsense(&'static str, serde_json::Error),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Lost(reason) => Error::disconnected(reason),
            CallError::Refused(refusal) => refusal.into(),
            CallError::Nonsense(method, error) => Error::Nonsense {
                method,
                reason: Arc::new(error),
            },
        }
    }
}

/// A connection, as long as it lasts.
pub(super) struct Line {
    pub(super) number: LineNumber,
    pub(super) outbox: Outbox,
    /// Cancelled to drop the connection, and when it can't be written to.
    pub(super) gone: CancellationToken,
    waiting: Mutex<Waiting>,
    /// Set before whoever waits for an answer is let go.
    loss: OnceLock<Loss>,
    /// Cancelled when there is a loss.
    lost: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    last_id: i64,
    calls: HashMap<i64, Call>,
}

/// What an answer is for.
pub(super) enum Call {
    /// Somebody waits; dropping the sender says that it won't come.
    Reply {
        reply: oneshot::Sender<Result<Bytes, RpcError>>,
        /// The process whose existence hangs on the answer.
        starts: Option<Starting>,
    },
    /// Nobody waits: a process was told to end that nobody wants.
    Settles(String),
    /// Nobody waits, and nothing depends on it: a file was closed.
    Closes,
}

/// A process that is being started.
#[derive(Clone, Debug)]
pub(super) struct Starting {
    pub(super) id: String,
    /// Nobody else can have given this name to anything.
    pub(super) made_up: bool,
}

/// What a call is answered with; dropped without one if the connection is lost.
pub(super) type Reply = oneshot::Receiver<Result<Bytes, RpcError>>;

impl Line {
    pub(super) fn new(number: LineNumber) -> Self {
        let gone = CancellationToken::new();
        Line {
            number,
            outbox: Outbox::new(gone.clone()),
            gone,
            waiting: Mutex::default(),
            loss: OnceLock::new(),
            lost: CancellationToken::new(),
        }
    }

    /// Asks for something and waits for the answer, which comes, or the
    /// connection is lost. Cancel-safe in so far as nothing is left behind; what
    /// was asked for may happen all the same.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, CallError> {
        // Who has much on its way already waits before there is more.
        self.outbox.listening().await;
        let (reply, mut answer) = oneshot::channel();
        let starts = None;
        self.ask(method, params, Call::Reply { reply, starts })?;
        self.answer(method, &mut answer).await
    }

    /// Asks for a process, whoever waits for the answer.
    pub(super) fn ask_to_start(
        &self,
        params: &StartParams,
        starting: Starting,
    ) -> Result<Reply, CallError> {
        let (reply, answer) = oneshot::channel();
        let starts = Some(starting);
        self.ask(Method::ProcessStart, params, Call::Reply { reply, starts })?;
        Ok(answer)
    }

    /// Waits for an answer.
    pub(super) async fn answer<R: DeserializeOwned>(
        &self,
        method: Method,
        reply: &mut Reply,
    ) -> Result<R, CallError> {
        let answer = reply.await.map_err(|_| self.lost_error())?;
        let result = answer.map_err(CallError::Refused)?;
        serde_json::from_slice(&result).map_err(|error| CallError::Nonsense(method.name(), error))
    }

    /// Tells the server to end a process, and doesn't wait.
    pub(super) fn settle(&self, method: Method, params: &impl Serialize, id: &str) {
        // A line that is lost settles nothing; the next one will.
        let _ = self.ask(method, params, Call::Settles(id.to_owned()));
    }

    /// Tells the server that a file isn't needed any more, and doesn't wait. One
    /// that is lost has closed all of its files.
    pub(super) fn close_file(&self, params: &FsCloseParams) {
        let _ = self.ask(Method::FsClose, params, Call::Closes);
    }

    fn ask(&self, method: Method, params: &impl Serialize, call: Call) -> Result<(), CallError> {
        let mut waiting = self.waiting();
        if self.loss.get().is_some() {
            return Err(self.lost_error());
        }
        let id = waiting.last_id + 1;
        let mut message = Vec::new();
        encode_request(&mut message, id, method.name(), params)
            .map_err(|error| CallError::Nonsense(method.name(), error))?;
        waiting.last_id = id;
        waiting.calls.insert(id, call);
        // Under the lock: requests go out in the order of their numbers.
        self.outbox.answer(Answer::new(message));
        Ok(())
    }

    /// Says something that needs no answer.
    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        let mut message = Vec::new();
        match encode_notification(&mut message, method, params) {
            Ok(()) => self.outbox.answer(Answer::new(message)),
            Err(error) => tracing::error!(%error, method, "failed to encode a notification"),
        }
    }

    /// What the answer with this id is for.
    pub(super) fn answered(&self, id: i64) -> Option<Call> {
        self.waiting().calls.remove(&id)
    }

    /// The connection is gone. Whoever waits is let go; gives back what is now
    /// unknown: the processes that may or may not have been started.
    pub(super) fn lose(&self, loss: Loss) -> Vec<String> {
        let calls = {
            let mut waiting = self.waiting();
            let _ = self.loss.set(loss);
            std::mem::take(&mut waiting.calls)
        };
        let starts = calls
            .into_values()
            .filter_map(|call| match call {
                Call::Reply { starts, .. } => starts.map(|starting| starting.id),
                Call::Settles(_) | Call::Closes => None,
            })
            .collect();
        self.gone.cancel();
        self.outbox.end();
        starts
    }

    /// Tells those who wait for it that the loss has been dealt with.
    pub(super) fn announce_loss(&self) {
        self.lost.cancel();
    }

    /// Waits until the connection is lost, and says why.
    pub(super) async fn lost(&self) -> Loss {
        self.lost.cancelled().await;
        self.loss.get().cloned().unwrap_or_else(|| Loss {
            reason: "the connection was lost".to_owned(),
            for_good: false,
        })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    /// Says goodbye once everything so far is sent.
    pub(super) fn close(&self) {
        self.outbox.close(CloseReason::Normal);
    }

    fn lost_error(&self) -> CallError {
        let reason = self.loss.get().map(|loss| loss.reason.clone());
        CallError::Lost(reason.unwrap_or_else(|| "the connection was closed".to_owned()))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
