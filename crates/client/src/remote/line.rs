//! One connection: what is asked on it, and what is answered.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use outpost_protocol::{
    Empty, FsCloseParams, MAX_MESSAGE_BYTES, Malformed, Method, RpcError, StartParams,
    encode_notification, encode_request, encode_write_block,
};
use outpost_rpc::{Answer, CloseReason, Outbox};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    bodies::Bodies,
    recovery::{LineNumber, Loss},
};
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
    /// What is streamed to us; lost with the connection.
    pub(super) bodies: Bodies,
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
        reply: oneshot::Sender<Result<Bytes, Unanswered>>,
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

/// Why an answer has no result.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The server said no.
    Refused(RpcError),
    /// It said something that can't be understood.
    Nonsense(serde_json::Error),
}

/// Whose something must be that belongs to a call and doesn't say to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    Nobody,
    One(i64),
    Many,
}

/// What a call is answered with; dropped without one if the connection is lost.
pub(super) type Reply = oneshot::Receiver<Result<Bytes, Unanswered>>;

impl Line {
    pub(super) fn new(number: LineNumber) -> Self {
        let gone = CancellationToken::new();
        Line {
            number,
            outbox: Outbox::new(gone.clone()),
            gone,
            waiting: Mutex::default(),
            bodies: Bodies::default(),
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
        let result = answer.map_err(|unanswered| match unanswered {
            Unanswered::Refused(refusal) => CallError::Refused(refusal),
            Unanswered::Nonsense(error) => CallError::Nonsense(method.name(), error),
        })?;
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

    /// Writes a block of a file; the same as any other call, without a detour for
    /// its bytes.
    pub(super) async fn write_block(
        &self,
        handle_id: &str,
        offset: u64,
        chunk: &[u8],
    ) -> Result<(), CallError> {
        self.outbox.listening().await;
        let (reply, mut answer) = oneshot::channel();
        let starts = None;
        self.send(Call::Reply { reply, starts }, |message, id| {
            encode_write_block(message, id, handle_id, offset, chunk);
            Ok(())
        })?;
        let Empty {} = self.answer(Method::FsWriteBlock, &mut answer).await?;
        Ok(())
    }

    fn ask(&self, method: Method, params: &impl Serialize, call: Call) -> Result<(), CallError> {
        self.send(call, |message, id| {
            encode_request(message, id, method.name(), params)
                .map_err(|error| CallError::Nonsense(method.name(), error))
        })
    }

    fn send(
        &self,
        call: Call,
        encode: impl FnOnce(&mut Vec<u8>, i64) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut waiting = self.waiting();
        if self.loss.get().is_some() {
            return Err(self.lost_error());
        }
        let id = waiting.last_id + 1;
        let mut message = Vec::new();
        encode(&mut message, id)?;
        if message.len() > MAX_MESSAGE_BYTES {
            let words = Malformed::too_large().to_string();
            return Err(CallError::Refused(RpcError::invalid_request(words)));
        }
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

    /// Who waits for an answer.
    pub(super) fn only_call(&self) -> Only {
        let waiting = self.waiting();
        let mut ids = waiting.calls.keys();
        match (ids.next(), ids.next()) {
            (None, _) => Only::Nobody,
            (Some(id), None) => Only::One(*id),
            (Some(_), Some(_)) => Only::Many,
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
        self.bodies.lose(&self.lost_error().into());
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
