//! One connection, from the client's side.
//!
//! - [`wire`] carries messages: frames of a WebSocket or lines
//! - [`inbox`] is what has come, filled by a task of its own
//! - [`calls`] are requests and their answers, and the handshake
//! - [`processes`] are the verbs of a process

mod calls;
mod inbox;
mod processes;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::{Mark, patience};
pub use calls::RpcError;
use inbox::Inbox;
pub use inbox::{Counted, Goodbye, Seen};
use wire::{Reader, Writer};

/// A client of the server under test.
#[derive(Debug)]
pub struct Client {
    writer: Mutex<Writer>,
    inbox: Arc<Inbox>,
    /// Reads into the inbox while the gate is open; ends with the connection or with the client.
    reading: JoinHandle<()>,
    gate: watch::Sender<bool>,
    next_id: AtomicI64,
    mark: Mark,
}

impl Client {
    /// Over a WebSocket, at `ws://ADDRESS` or `unix://PATH`.
    pub(crate) async fn over_websocket(url: &str, mark: Mark) -> Self {
        let (writer, reader) = patience::soon("a connection", wire::websocket(url)).await;
        Self::over(writer, reader, mark)
    }

    /// Over lines on a pair of pipes.
    pub(crate) fn over_lines(write: pipe::Sender, read: pipe::Receiver, mark: Mark) -> Self {
        Self::over(Writer::Lines(Some(write)), Reader::lines(read), mark)
    }

    fn over(writer: Writer, reader: Reader, mark: Mark) -> Self {
        let inbox = Arc::new(Inbox::default());
        let (gate, open) = watch::channel(true);
        Client {
            writer: Mutex::new(writer),
            reading: tokio::spawn(wire::read_all(reader, Arc::clone(&inbox), open)),
            inbox,
            gate,
            next_id: AtomicI64::new(1),
            mark,
        }
    }

    /// What its processes are to carry.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Sends a message.
    pub async fn send(&self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    /// Sends a text as one message, whatever it is.
    pub async fn send_text(&self, text: &str) {
        self.try_send_text(text)
            .await
            .unwrap_or_else(|error| panic!("can't send: {error}"));
    }

    /// As [`Client::send_text`], for a connection that may be gone.
    pub async fn try_send_text(&self, text: &str) -> Result<(), String> {
        patience::soon("a message to be sent", self.writer.lock().await.text(text)).await
    }

    /// Sends raw frames of a WebSocket.
    pub async fn send_frames(&self, frames: Vec<Message>) {
        let mut writer = self.writer.lock().await;
        let sent = patience::soon("frames to be sent", writer.frames(frames)).await;
        sent.unwrap_or_else(|error| panic!("can't send: {error}"));
    }

    /// Sends raw bytes where lines carry the messages.
    pub async fn send_bytes(&self, bytes: &[u8]) {
        let sent = patience::soon("bytes to be sent", self.writer.lock().await.bytes(bytes)).await;
        sent.unwrap_or_else(|error| panic!("can't send: {error}"));
    }

    /// An id that no request has had.
    pub fn fresh_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops reading from the connection, until [`Client::read_on`].
    pub fn stop_reading(&self) {
        self.gate.send_replace(false);
    }

    /// Reads again.
    pub fn read_on(&self) {
        self.gate.send_replace(true);
    }

    /// Everything that has come so far, in order.
    pub fn received(&self) -> Vec<Arc<Value>> {
        self.inbox.look(|seen| seen.messages.clone())
    }

    /// Waits until `look` finds something in what has come.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Seen) -> Option<T>) -> T {
        self.inbox.until(what, look).await
    }

    /// Waits for a message that isn't an answer to one of our requests, past the first `skip`
    /// of its kind.
    pub async fn unasked(&self, skip: usize) -> Value {
        self.until("an answer with id -1", |seen| {
            let message = seen.answers.get("-1")?.get(skip)?;
            Some(Value::clone(message))
        })
        .await
    }

    /// Waits for a pong with this payload.
    pub async fn pong(&self, payload: &[u8]) {
        self.until("a pong", |seen| {
            seen.pongs.iter().any(|pong| pong == payload).then_some(())
        })
        .await;
    }

    /// Waits for the other side to end the connection.
    pub async fn goodbye(&self) -> Goodbye {
        self.until("the end of the connection", |seen| seen.goodbye.clone())
            .await
    }

    /// Whether the other side has ended the connection.
    pub fn is_over(&self) -> bool {
        self.inbox.look(|seen| seen.goodbye.is_some())
    }

    /// Says goodbye properly, and waits for the end.
    pub async fn close(self) {
        let _ = self.writer.lock().await.close().await;
        self.goodbye().await;
    }

    /// Ends the input of a server on stdio, and goes on listening.
    pub async fn end_input(&self) {
        let _ = self.writer.lock().await.close().await;
    }

    /// Drops the connection without a word.
    pub async fn cut(mut self) {
        self.reading.abort();
        let _ = (&mut self.reading).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reading.abort();
        if std::thread::panicking() {
            self.inbox.tell_all();
        }
    }
}
