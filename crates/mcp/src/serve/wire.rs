//! A client's line: what it says as messages for the SDK, and what it is told as
//! lines.

use std::collections::VecDeque;

use bytes::BytesMut;
use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage,
        ProtocolVersion, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::{Bounds, batches::Batches};
use crate::lines::{Line, Lines};

/// How much is read at once.
const BLOCK: usize = 64 * 1024;
/// Lines that wait to be written; who has one more waits.
const WAITING: usize = 16;
/// As JSON-RPC has it: this is no message.
const INVALID_REQUEST: i64 = -32600;

pub(super) struct Wire<R> {
    read: R,
    block: BytesMut,
    lines: Lines,
    /// Understood, and not given out yet.
    ready: VecDeque<ClientJsonRpcMessage>,
    batches: Batches,
    /// The most messages that may come together.
    together: usize,
    /// What we say ourselves, without the SDK's knowing.
    own: VecDeque<Vec<u8>>,
    opening: Opening,
    /// To the one who writes; gone when this is closed.
    out: Option<mpsc::Sender<Vec<u8>>>,
    ended: bool,
}

/// How the conversation was begun. Before that only requests make sense, and some
/// hosts say other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    None,
    Handshake,
    /// In the way of the newest revision.
    Request,
}

/// Why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("cannot write a message as JSON")]
    Encode(#[from] serde_json::Error),
    #[error("the client doesn't listen any more")]
    Closed,
}

impl<R> Wire<R> {
    /// With the one who writes, who is done when everything is written after this
    /// was closed or dropped. Must be called inside a tokio runtime.
    pub(super) fn new(
        read: R,
        write: impl AsyncWrite + Send + Unpin + 'static,
        bounds: &Bounds,
    ) -> (Self, AbortOnDropHandle<()>) {
        let (out, lines) = mpsc::channel(WAITING);
        let writing = AbortOnDropHandle::new(tokio::spawn(write_out(write, lines)));
        let wire = Wire {
            read,
            block: BytesMut::new(),
            lines: Lines::new(bounds.message_bytes),
            ready: VecDeque::new(),
            batches: Batches::default(),
            together: bounds.calls,
            own: VecDeque::new(),
            opening: Opening::None,
            out: Some(out),
            ended: false,
        };
        (wire, writing)
    }

    fn understand(&mut self, line: &Line) {
        let line = match line {
            Line::Whole(line) => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            Line::TooLong { bytes, .. } => {
                return self.refuse(&format!("{bytes} bytes are too many"));
            }
        };
        if line.trim_ascii_start().starts_with(b"[") {
            return match serde_json::from_slice(line) {
                Ok(messages) => self.understand_batch(messages),
                Err(error) => debug!(%error, "skipped what is no message"),
            };
        }
        match serde_json::from_slice(line) {
            Ok(message) => self.take(message),
            // To answer what is no JSON at all may be the beginning of an endless
            // exchange of such.
            Err(error) => match serde_json::from_slice(line) {
                Ok(value) => {
                    if let Some(refusal) = self.refused(&value, &error) {
                        self.say(&refusal);
                    }
                }
                Err(error) => debug!(%error, "skipped what is no message"),
            },
        }
    }

    fn understand_batch(&mut self, messages: Vec<Value>) {
        if messages.is_empty() || messages.len() > self.together {
            let most = self.together;
            return self.refuse(&format!("a batch has from 1 to {most} messages"));
        }
        let (mut understood, mut waiting, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for value in messages {
            match serde_json::from_value(value.clone()) {
                Ok(message) => {
                    if let JsonRpcMessage::Request(request) = &message {
                        // Of two with one id nobody could tell which is answered.
                        if waiting.contains(&request.id) || self.batches.waits_for(&request.id) {
                            return self.refuse("a batch repeats the id of a request");
                        }
                        waiting.push(request.id.clone());
                    }
                    understood.push(message);
                }
                Err(error) => answers.extend(self.refused(&value, &error)),
            }
        }
        // First, since what is called off may have come in the same batch.
        if let Some(answers) = self.batches.begin(waiting, answers) {
            self.say(&answers);
        }
        for message in understood {
            self.take(message);
        }
    }

    /// Refuses what came as a whole.
    fn refuse(&mut self, words: &str) {
        let refusal = self.refusal(&Value::Null, words);
        self.say(&refusal);
    }

    fn take(&mut self, message: ClientJsonRpcMessage) {
        match &message {
            JsonRpcMessage::Request(request) => self.open_with(&request.request),
            _ if self.opening == Opening::None => {
                debug!("skipped what nobody can say before the conversation has begun");
                return;
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(off) = &told.notification
                    && let Some(id) = &off.params.request_id
                    && let Some(answers) = self.batches.called_off(id)
                {
                    self.say(&answers);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        self.ready.push_back(message);
    }

    fn open_with(&mut self, request: &ClientRequest) {
        if self.opening != Opening::None {
            return;
        }
        let newest = &ProtocolVersion::V_2026_07_28;
        let meta = request.get_meta();
        self.opening = match request {
            ClientRequest::InitializeRequest(_) => Opening::Handshake,
            // These may come before the conversation.
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => return,
            _ if meta.missing_required_keys(newest).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version)) =>
            {
                Opening::Request
            }
            // It is refused.
            _ => return,
        };
    }

    /// What is said to something that is JSON, but no message; nothing to what looks
    /// like a notification or an answer, neither of which is ever answered.
    fn refused(&self, value: &Value, error: &serde_json::Error) -> Option<Value> {
        debug!(%error, "refused what is no message");
        let has = |name: &str| value.get(name).is_some();
        let is_answer = !has("method") && (has("result") || has("error"));
        if is_answer || has("method") && !has("id") {
            return None;
        }
        let id = value.get("id").filter(|id| id.is_string() || id.is_i64());
        Some(self.refusal(id.unwrap_or(&Value::Null), "this is no request"))
    }

    fn refusal(&self, id: &Value, words: &str) -> Value {
        let mut refusal = json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": INVALID_REQUEST, "message": words},
        });
        // The newest revision leaves out what JSON-RPC writes as null.
        if id.is_null()
            && self.opening == Opening::Request
            && let Some(members) = refusal.as_object_mut()
        {
            members.remove("id");
        }
        refusal
    }

    fn say(&mut self, message: &Value) {
        self.own.push_back(format!("{message}\n").into_bytes());
    }

    /// The line to be written for a message, if it is time for one.
    fn line(&mut self, item: &ServerJsonRpcMessage) -> Result<Option<Vec<u8>>, serde_json::Error> {
        let id = match item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let mut line = match id.filter(|_| !self.batches.is_empty()) {
            None => serde_json::to_vec(item)?,
            Some(id) => match self.batches.answered(id, serde_json::to_value(item)?) {
                Some(said) => serde_json::to_vec(&said)?,
                None => return Ok(None),
            },
        };
        line.push(b'\n');
        Ok(Some(line))
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Wire<R> {
    type Error = WireError;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), WireError>> + Send + 'static {
        let line = self.line(&item);
        let out = self.out.clone();
        async move {
            let Some(line) = line? else { return Ok(()) };
            let out = out.ok_or(WireError::Closed)?;
            out.send(line).await.map_err(|_| WireError::Closed)
        }
    }

    /// Cancel-safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while !self.own.is_empty() {
                let room = self.out.as_ref()?.reserve().await;
                // Who doesn't listen may still have something to say.
                let line = self.own.pop_front();
                if let (Ok(room), Some(line)) = (room, line) {
                    room.send(line);
                }
            }
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if let Some(line) = self.lines.pop() {
                self.understand(&line);
                continue;
            }
            if self.ended {
                return None;
            }
            self.block.reserve(BLOCK);
            match self.read.read_buf(&mut self.block).await {
                Ok(1..) => self.lines.push(self.block.split().freeze()),
                Ok(0) | Err(_) => {
                    self.lines.finish();
                    self.ended = true;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), WireError> {
        self.out = None;
        Ok(())
    }
}

async fn write_out(mut write: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            write.write_all(&line).await?;
            write.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
