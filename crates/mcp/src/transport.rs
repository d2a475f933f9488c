//! A process as a transport of the SDK.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_client::{Event, Events, Process, StreamName};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    Limits,
    account::{Account, Fault, excerpt},
    lines::{Line, Lines},
    parting,
    probe::Probe,
};

/// How long a place may take to be told that a server is to end.
const END_WITHIN: Duration = Duration::from_secs(10);

/// The messages of a server, wherever it runs: lines of its standard input and
/// output. What it says on standard error is logged. Closing or dropping this
/// ends the server.
pub struct ProcessTransport {
    name: Arc<str>,
    process: Process,
    events: Events,
    messages: Lines,
    errors: Lines,
    /// Out of one line, and not given out yet.
    ready: VecDeque<ServerJsonRpcMessage>,
    probe: Probe,
    exit: Option<i32>,
    /// Gone as soon as the last message that was sent is written, or given up.
    last_sent: Option<oneshot::Receiver<Infallible>>,
    /// Rung when the process takes no more input.
    deaf: Arc<Notify>,
    /// How long it has to end then.
    farewell: Duration,
    /// How long it has to end when we end its input.
    parting: Duration,
    /// When it has to have ended, once it takes no more input.
    ends_by: Option<Instant>,
    /// Whether nothing more comes, or nobody wants it.
    over: bool,
    /// Whether the process has ended, or was told to.
    ended: bool,
    account: Account,
}

/// Why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no way to write it down.
    #[error("cannot write a message as JSON")]
    Encode(#[from] serde_json::Error),
    /// The process can't be ended.
    #[error("cannot end the server")]
    End(#[from] outpost_client::Error),
}

impl ProcessTransport {
    /// Speaks with this process, which was started with an input.
    #[must_use]
    pub fn new(name: &str, process: Process, limits: &Limits) -> Self {
        ProcessTransport {
            name: name.into(),
            events: process.events(),
            process,
            messages: Lines::new(limits.message_bytes),
            errors: Lines::new(limits.stderr_line_bytes),
            ready: VecDeque::new(),
            probe: Probe::new(limits.discovery),
            exit: None,
            last_sent: None,
            deaf: Arc::default(),
            farewell: limits.reason,
            parting: limits.parting,
            ends_by: None,
            over: false,
            ended: false,
            account: Account::new(),
        }
    }

    /// What is known of the server beside its messages.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    fn output(&mut self, stream: StreamName, bytes: Bytes) {
        if stream == StreamName::Stderr {
            self.errors.push(bytes);
            self.log();
        } else {
            self.messages.push(bytes);
            self.understand();
        }
    }

    fn log(&mut self) {
        while let Some(line) = self.errors.pop() {
            match line {
                Line::Whole(line) => {
                    let text = String::from_utf8_lossy(&line);
                    info!(server = &*self.name, "{text}");
                    self.account.say(&line);
                }
                Line::TooLong { bytes, .. } => {
                    debug!(server = &*self.name, bytes, "an error line was too long");
                }
            }
        }
    }

    fn understand(&mut self) {
        while let Some(line) = self.messages.pop() {
            match line {
                Line::Whole(line) => {
                    for message in parse(&line) {
                        match message {
                            Ok(message) => self.ready.push_back(message),
                            Err(error) => {
                                let line = &line;
                                debug!(server = &*self.name, %error, line = %excerpt(line), "skipped what is no message");
                                self.account.skip(line);
                            }
                        }
                    }
                }
                Line::TooLong { bytes, answers } => {
                    warn!(
                        server = &*self.name,
                        bytes, "skipped a message that is too long"
                    );
                    match answers.and_then(|id| serde_json::from_value(id).ok()) {
                        Some(id) => self.ready.push_back(too_long(bytes, id)),
                        None => self.account.skip(b"(a line that is too long)"),
                    }
                }
            }
        }
    }

    fn next_ready(&mut self) -> Option<ServerJsonRpcMessage> {
        while let Some(message) = self.ready.pop_front() {
            if self.probe.received(&message) {
                return Some(message);
            }
        }
        None
    }

    /// Nothing more comes. The last lines need no end.
    fn finish(&mut self) {
        self.messages.finish();
        self.understand();
        self.errors.finish();
        self.log();
        self.over = true;
    }

    fn take(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Output { stream, bytes, .. }) => self.output(stream, bytes),
            // What it has left behind may still speak for it.
            Some(Event::Exited { code, .. }) => self.exit = Some(code),
            Some(Event::Closed { .. }) => {
                self.finish();
                self.ended = true;
                let said = self.account.said();
                let code = self.exit.unwrap_or(-1);
                self.account.end(Fault::Exited { code, said });
            }
            Some(Event::Failed { message }) => {
                self.finish();
                self.ended = true;
                let reason = message.into();
                self.account.end(Fault::Lost { reason });
            }
            None => self.over = true,
        }
    }

    /// The next message, or none behind the last one. Cancel-safe.
    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.next_ready() {
                return Some(message);
            }
            if self.over {
                return None;
            }
            tokio::select! {
                biased;
                () = self.deaf.notified() => {
                    self.ends_by.get_or_insert(Instant::now() + self.farewell);
                }
                () = at(self.probe.until()) => {
                    if let Some(refusal) = self.probe.overdue(Instant::now()) {
                        self.account.give_up_discovery();
                        return Some(refusal);
                    }
                }
                () = at(self.ends_by) => {
                    self.finish();
                    self.account.end(Fault::Deaf);
                }
                // Last, because a server that never stops talking mustn't outlast
                // its deadlines.
                event = self.events.next() => self.take(event),
            }
        }
    }
}

/// Then, or never.
async fn at(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}

impl Transport<RoleClient> for ProcessTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        self.probe.sent(&item, Instant::now());
        let process = self.process.clone();
        let deaf = Arc::clone(&self.deaf);
        // The futures are polled by tasks of the SDK's, in any order, and messages
        // arrive in the order of these calls all the same.
        let (turn, next) = oneshot::channel::<Infallible>();
        let before = self.last_sent.replace(next);
        async move {
            let _turn = turn;
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            if let Some(before) = before {
                // It says nothing, and is gone when the one before is written.
                let _ = before.await;
            }
            let written = process.write(line).await;
            if let Err(error) = written {
                // It has ended, or is lost, and its events are about to say why;
                // or else it is of no use any more.
                debug!(%error, "a message was not taken");
                deaf.notify_one();
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> Result<(), SendError> {
        self.account.end(Fault::Closed);
        self.over = true;
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let leaving = parting::dismiss(&self.process, self.parting);
        tokio::pin!(leaving);
        loop {
            tokio::select! {
                () = &mut leaving => break,
                // What it says last is for nobody, but it mustn't wait for a reader.
                event = self.events.next() => match event {
                    Some(Event::Output { .. } | Event::Exited { .. }) => {}
                    Some(Event::Closed { .. } | Event::Failed { .. }) | None => break,
                },
            }
        }
        parting::end(&self.process).await?;
        // It was told, so its last handle needn't tell it again.
        self.process.detach();
        Ok(())
    }
}

impl Drop for ProcessTransport {
    fn drop(&mut self) {
        self.account.end(Fault::Closed);
        // Its handle would end it too, but not what one that has exited left.
        if let Ok(runtime) = Handle::try_current()
            && !self.ended
        {
            let process = self.process.clone();
            let parting = self.parting;
            runtime.spawn(async move {
                let ending = async {
                    parting::dismiss(&process, parting).await;
                    parting::end(&process).await
                };
                if let Ok(Ok(())) = timeout(END_WITHIN, ending).await {
                    process.detach();
                }
            });
        }
    }
}

/// What is said in place of an answer that was thrown away, so that nobody waits
/// for it.
fn too_long(bytes: u64, id: RequestId) -> ServerJsonRpcMessage {
    let words = format!("the answer of {bytes} bytes is too long");
    ServerJsonRpcMessage::error(ErrorData::internal_error(words, None), Some(id))
}

/// The messages in a line: one, or several in the way of an older revision, of
/// which each is understood by itself.
fn parse(line: &[u8]) -> Vec<Result<ServerJsonRpcMessage, serde_json::Error>> {
    if !line.trim_ascii_start().starts_with(b"[") {
        return vec![serde_json::from_slice(line)];
    }
    match serde_json::from_slice::<Vec<serde_json::Value>>(line) {
        Ok(items) => items.into_iter().map(serde_json::from_value).collect(),
        Err(error) => vec![Err(error)],
    }
}
