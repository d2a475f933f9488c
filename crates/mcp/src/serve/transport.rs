//! The rmcp transport to the client: JSON-RPC messages as lines.
//!
//! rmcp's own line transport isn't used: it rejects an invalid message without its id, and
//! drops an unterminated last line.

use bytes::BytesMut;
use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcMessage, JsonRpcRequest,
        ProtocolVersion, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::debug;

use crate::lines::{Line, LineSplitter, parse};

const READ_BYTES: usize = 64 * 1024;
/// Capacity of the queue of outgoing lines. A full queue blocks the sender.
const WRITE_QUEUE: usize = 16;
/// The JSON-RPC error code "Invalid Request".
const INVALID_REQUEST: i64 = -32600;

/// A transport with one JSON-RPC message per line.
pub(super) struct LineTransport<R> {
    read: R,
    buffer: BytesMut,
    lines: LineSplitter,
    /// An error response of the transport itself that was not queued yet.
    error: Option<Vec<u8>>,
    phase: Phase,
    /// The queue of the writer task; `None` once closed.
    out: Option<mpsc::Sender<Vec<u8>>>,
    /// Cancelled at the end of the input.
    pub(super) ended: CancellationToken,
}

/// How the session was opened. Before that only requests are valid, but some hosts send
/// notifications as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    NotOpen,
    /// Opened by `initialize`.
    Initialized,
    /// Opened by any request, as in MCP 2026-07-28.
    Stateless,
}

/// Why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error("cannot encode the message as JSON")]
    Encode(#[from] serde_json::Error),
    #[error("the client closed the connection")]
    Closed,
}

impl<R> LineTransport<R> {
    /// Returns the transport and its writer task, which completes when everything is
    /// written after the transport was closed or dropped. Must be called inside a tokio
    /// runtime.
    pub(super) fn new(
        read: R,
        write: impl AsyncWrite + Send + Unpin + 'static,
        message_bytes: usize,
    ) -> (Self, AbortOnDropHandle<()>) {
        let (out, queue) = mpsc::channel(WRITE_QUEUE);
        let writer = AbortOnDropHandle::new(tokio::spawn(write_lines(write, queue)));
        let transport = LineTransport {
            read,
            buffer: BytesMut::new(),
            lines: LineSplitter::new(message_bytes),
            error: None,
            phase: Phase::NotOpen,
            out: Some(out),
            ended: CancellationToken::new(),
        };
        (transport, writer)
    }

    /// Handles a line. Returns the message for the SDK, if it is one.
    fn on_line(&mut self, line: &Line) -> Option<ClientJsonRpcMessage> {
        let line = match line {
            Line::Complete(line) => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            Line::TooLong { bytes, .. } => {
                let message = format!("the message of {bytes} bytes is too long");
                self.reject(&Value::Null, &message);
                return None;
            }
        };
        let error = match parse(line) {
            Ok(message) => return self.on_message(message),
            Err(error) => error,
        };
        match serde_json::from_slice(line) {
            Ok(Value::Array(_)) => {
                self.reject(&Value::Null, "JSON-RPC batches are not supported");
            }
            Ok(value) => {
                debug!(%error, "rejected an invalid message");
                self.reject_invalid(&value);
            }
            // Invalid JSON gets no response: two peers that answer it could loop for ever.
            Err(error) => debug!(%error, "skipped a line that is not JSON"),
        }
        None
    }

    /// Observes the message that opens the session. Earlier notifications and responses are
    /// skipped.
    fn on_message(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if self.phase != Phase::NotOpen {
            return Some(message);
        }
        let JsonRpcMessage::Request(JsonRpcRequest { request, .. }) = &message else {
            debug!("skipped a notification or response before the handshake");
            return None;
        };
        let newest = &ProtocolVersion::V_2026_07_28;
        let meta = request.get_meta();
        let is_stateless = || {
            meta.missing_required_keys(newest).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        };
        match request {
            ClientRequest::InitializeRequest(_) => self.phase = Phase::Initialized,
            // Allowed before the handshake.
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => {}
            _ if is_stateless() => self.phase = Phase::Stateless,
            // The SDK rejects it.
            _ => {}
        }
        Some(message)
    }

    /// Rejects JSON that is not a message. Notifications and responses get no response.
    fn reject_invalid(&mut self, value: &Value) {
        let has = |name: &str| value.get(name).is_some();
        let is_response = !has("method") && (has("result") || has("error"));
        let is_notification = has("method") && !has("id");
        if is_response || is_notification {
            return;
        }
        let id = value.get("id").filter(|id| id.is_string() || id.is_i64());
        self.reject(id.unwrap_or(&Value::Null), "not a valid JSON-RPC request");
    }

    fn reject(&mut self, id: &Value, message: &str) {
        let error = json!({"code": INVALID_REQUEST, "message": message});
        let mut response = json!({"jsonrpc": "2.0", "error": error});
        // MCP 2026-07-28 omits an unknown id; JSON-RPC has `null`.
        if !id.is_null() || self.phase != Phase::Stateless {
            response["id"] = id.clone();
        }
        self.error = Some(format!("{response}\n").into_bytes());
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = TransportError;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let out = out.ok_or(TransportError::Closed)?;
            out.send(line).await.map_err(|_| TransportError::Closed)
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.error.is_some() {
                let permit = self.out.as_ref()?.reserve().await;
                let line = self.error.take();
                // A client that no longer reads may still send messages.
                if let (Ok(permit), Some(line)) = (permit, line) {
                    permit.send(line);
                }
            }
            if let Some(line) = self.lines.pop() {
                if let Some(message) = self.on_line(&line) {
                    return Some(message);
                }
                continue;
            }
            if self.ended.is_cancelled() {
                return None;
            }
            self.buffer.reserve(READ_BYTES);
            match self.read.read_buf(&mut self.buffer).await {
                Ok(1..) => self.lines.push(self.buffer.split().freeze()),
                Ok(0) | Err(_) => {
                    self.lines.finish();
                    self.ended.cancel();
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.out = None;
        Ok(())
    }
}

async fn write_lines(mut write: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        let written = async {
            write.write_all(&line).await?;
            write.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
