//! One client connection.
//!
//! - [`wire`]: messages as WebSocket frames or lines
//! - [`received`]: everything received, filled by the reading task
//! - [`calls`]: requests, responses, handshake
//! - [`processes`]: process methods

mod calls;
mod processes;
mod received;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::{TestTag, deadline};
pub use calls::{CallError, RpcError};
pub(crate) use received::EventSink;
use received::Incoming;
pub use received::{ConnectionEnd, OutputCount, Received};
pub(crate) use wire::Outcome;
use wire::{Reader, Writer};

/// A client of the server under test.
pub struct Client {
    writer: Mutex<Writer>,
    /// Filled by the reading task, inspected by the test.
    inbox: Arc<watch::Sender<Received>>,
    /// Reads into the inbox while the gate is open; ends with the connection or the client.
    reading: JoinHandle<()>,
    /// Its only receiver is in the reading task.
    gate: watch::Sender<bool>,
    next_id: AtomicI64,
    tag: TestTag,
}

impl Client {
    /// Connects a WebSocket to `ws://ADDRESS` or `unix://PATH`.
    pub(crate) async fn over_websocket(
        url: &str,
        tag: TestTag,
        sink: Option<EventSink>,
    ) -> Outcome<Self> {
        let (writer, reader) = wire::websocket(url, None).await?;
        Ok(Self::over(writer, reader, tag, sink))
    }

    /// Connects a WebSocket with a bearer token.
    pub(crate) async fn with_token(url: &str, tag: TestTag, token: &str) -> Outcome<Self> {
        let (writer, reader) = wire::websocket(url, Some(token)).await?;
        Ok(Self::over(writer, reader, tag, None))
    }

    /// Uses lines on a pair of pipes.
    pub(crate) fn over_lines(write: pipe::Sender, read: pipe::Receiver, tag: TestTag) -> Self {
        let reader = Reader::Lines(BufReader::new(read));
        Self::over(Writer::Lines(Some(write)), reader, tag, None)
    }

    fn over(writer: Writer, mut reader: Reader, tag: TestTag, sink: Option<EventSink>) -> Self {
        let inbox = Arc::new(watch::Sender::new(Received {
            sink,
            ..Received::default()
        }));
        let filled = Arc::clone(&inbox);
        let (gate, mut open) = watch::channel(true);
        let reading = async move {
            while open.wait_for(|open| *open).await.is_ok() {
                let incoming = reader.next().await;
                let is_end = matches!(incoming, Incoming::End(_));
                filled.send_modify(|received| received.add(incoming));
                if is_end {
                    return;
                }
            }
        };
        Client {
            writer: Mutex::new(writer),
            inbox,
            reading: tokio::spawn(reading),
            gate,
            next_id: AtomicI64::new(1),
            tag,
        }
    }

    /// The tag of its processes.
    pub fn tag(&self) -> &TestTag {
        &self.tag
    }

    /// Sends a message.
    pub async fn send(&self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    /// Sends any text as one message.
    pub async fn send_text(&self, text: &str) {
        self.try_send_text(text)
            .await
            .unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends any text as one message, over a connection that may be lost.
    pub async fn try_send_text(&self, text: &str) -> Outcome<()> {
        deadline::expect_soon("a message to be sent", self.writer.lock().await.text(text)).await
    }

    /// Sends raw WebSocket frames.
    pub async fn send_frames(&self, frames: Vec<Message>) {
        let mut writer = self.writer.lock().await;
        let sent = deadline::expect_soon("frames to be sent", writer.frames(frames)).await;
        sent.unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends raw bytes on a stdio connection.
    pub async fn send_bytes(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock().await;
        let sent = deadline::expect_soon("bytes to be sent", writer.bytes(bytes)).await;
        sent.unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Returns an unused request id.
    pub fn fresh_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops reading from the connection, until [`Client::resume_reading`].
    pub fn stop_reading(&self) {
        self.gate.send_replace(false);
    }

    /// Continues reading.
    pub fn resume_reading(&self) {
        self.gate.send_replace(true);
    }

    /// Returns all received messages, in order.
    pub fn received(&self) -> Vec<Arc<Value>> {
        self.inbox.borrow().messages.clone()
    }

    /// Waits until `look` finds something in everything received. Panics at the deadline or at the
    /// end of the connection.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Received) -> Option<T>) -> T {
        let found = self.find(what, look).await;
        found.unwrap_or_else(|| {
            let end = self.inbox.borrow().end.clone();
            panic!("the connection ended ({end:?}) before {what}")
        })
    }

    /// Waits until `look` finds something in everything received, or the connection ends. Panics
    /// at the deadline.
    pub(crate) async fn find<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&Received) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let mut inbox = self.inbox.subscribe();
        let search = inbox.wait_for(|received| {
            found = look(received);
            found.is_some() || received.end.is_some()
        });
        let _ = deadline::expect_soon(what, search).await;
        found
    }

    /// Waits for an error with id -1, after the first `skip` of them.
    pub async fn error_without_id(&self, skip: usize) -> Value {
        self.until("an error with id -1", |received| {
            let message = received.responses.get("-1")?.get(skip)?;
            Some(Value::clone(message))
        })
        .await
    }

    /// Waits for a pong with this payload.
    pub async fn pong(&self, payload: &[u8]) {
        self.until("a pong", |received| {
            received
                .pongs
                .iter()
                .find(|pong| *pong == payload)
                .map(drop)
        })
        .await;
    }

    /// Waits until the server ends the connection.
    pub async fn connection_end(&self) -> ConnectionEnd {
        self.until("the end of the connection", |received| received.end.clone())
            .await
    }

    /// Waits until the reading task has ended, without a deadline. Panics if it has panicked.
    pub(crate) async fn ended(&self) {
        self.gate.closed().await;
        assert!(self.is_over(), "the reading task has panicked");
    }

    /// Returns true if the server has ended the connection.
    pub fn is_over(&self) -> bool {
        self.inbox.borrow().end.is_some()
    }

    /// Sends a close frame and waits for the end of the connection.
    pub async fn close(self) {
        self.end_input().await;
        self.connection_end().await;
    }

    /// Closes the input of a stdio server and continues to read.
    pub async fn end_input(&self) {
        self.writer.lock().await.close().await;
    }

    /// Drops the connection without a close frame. Panics if the reading task has panicked.
    pub async fn cut(mut self) {
        self.reading.abort();
        let ended = (&mut self.reading).await;
        let panicked = ended.is_err_and(|error| error.is_panic());
        assert!(!panicked, "the reading task has panicked");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reading.abort();
        if std::thread::panicking() {
            self.inbox.borrow().print_last();
        }
    }
}
