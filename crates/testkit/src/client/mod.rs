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
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::{TestTag, deadline};
pub use calls::RpcError;
use received::Inbox;
pub use received::{ConnectionEnd, OutputCount, Received};
use wire::{Reader, Writer};

/// A client of the server under test.
#[derive(Debug)]
pub struct Client {
    writer: Mutex<Writer>,
    inbox: Arc<Inbox>,
    /// Reads into the inbox while the gate is open; ends with the connection or the client.
    reading: JoinHandle<()>,
    gate: watch::Sender<bool>,
    next_id: AtomicI64,
    tag: TestTag,
}

impl Client {
    /// Connects a WebSocket to `ws://ADDRESS` or `unix://PATH`.
    pub(crate) async fn over_websocket(url: &str, tag: TestTag) -> Self {
        let (writer, reader) = deadline::expect_soon("a connection", wire::websocket(url)).await;
        Self::over(writer, reader, tag)
    }

    /// Uses lines on a pair of pipes.
    pub(crate) fn over_lines(write: pipe::Sender, read: pipe::Receiver, tag: TestTag) -> Self {
        Self::over(Writer::Lines(Some(write)), Reader::lines(read), tag)
    }

    fn over(writer: Writer, reader: Reader, tag: TestTag) -> Self {
        let inbox = Arc::new(Inbox::default());
        let (gate, open) = watch::channel(true);
        Client {
            writer: Mutex::new(writer),
            reading: tokio::spawn(wire::read_all(reader, Arc::clone(&inbox), open)),
            inbox,
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
    pub async fn try_send_text(&self, text: &str) -> Result<(), String> {
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
        let sent =
            deadline::expect_soon("bytes to be sent", self.writer.lock().await.bytes(bytes)).await;
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
        self.inbox.inspect(|received| received.messages.clone())
    }

    /// Waits until `look` finds something in everything received.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Received) -> Option<T>) -> T {
        self.inbox.until(what, look).await
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
                .any(|pong| pong == payload)
                .then_some(())
        })
        .await;
    }

    /// Waits until the server ends the connection.
    pub async fn connection_end(&self) -> ConnectionEnd {
        self.until("the end of the connection", |received| received.end.clone())
            .await
    }

    /// Returns true if the server has ended the connection.
    pub fn is_over(&self) -> bool {
        self.inbox.inspect(|received| received.end.is_some())
    }

    /// Sends a close frame and waits for the end of the connection.
    pub async fn close(self) {
        let _ = self.writer.lock().await.close().await;
        self.connection_end().await;
    }

    /// Closes the input of a stdio server and continues to read.
    pub async fn end_input(&self) {
        let _ = self.writer.lock().await.close().await;
    }

    /// Drops the connection without a close frame.
    pub async fn cut(mut self) {
        self.reading.abort();
        let _ = (&mut self.reading).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reading.abort();
        if std::thread::panicking() {
            self.inbox.print_last();
        }
    }
}
