//! An rmcp transport over the stdin and stdout of a process.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use outpost_client::{Event, Events, Executor, Process, Stream};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    Command, EndReason, Limits, ServerDiagnostics, ServerFailure,
    diagnostics::preview,
    discovery_timeout::DiscoveryTimeout,
    lines::{Line, LineSplitter, oversized_response, parse},
    shutdown,
};

/// Timeout for terminating the server when the transport is dropped.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(10);

/// Transports the messages of a server as lines of its stdin and stdout. Logs its
/// stderr. Closing or dropping the transport terminates the server.
///
/// rmcp's own line transport isn't used: it drops an unterminated last line, and drops
/// an oversized response without failing its call.
pub struct ProcessTransport {
    name: Arc<str>,
    process: Process,
    events: Events,
    stdout: LineSplitter,
    stderr: LineSplitter,
    /// Parsed messages that were not returned yet.
    received: VecDeque<ServerJsonRpcMessage>,
    discovery: DiscoveryTimeout,
    exit_code: Option<i32>,
    /// Closes when the previously sent message has been written or dropped.
    last_sent: Option<oneshot::Receiver<Infallible>>,
    /// Notified when a write to stdin fails.
    stdin_closed: Arc<Notify>,
    limits: Limits,
    /// Set once stdin is closed: the process must have ended by then.
    exit_deadline: Option<Instant>,
    /// No further messages are received.
    finished: bool,
    /// The process has ended, or its termination was requested.
    ended: bool,
    diagnostics: Arc<ServerDiagnostics>,
}

/// Errors of sending a message or closing the transport.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The message can't be serialized.
    #[error("cannot encode the message as JSON")]
    Encode(#[from] serde_json::Error),
    /// The executor failed to terminate the process.
    #[error("cannot terminate the server")]
    Terminate(#[from] outpost_client::Error),
}

impl ProcessTransport {
    /// Starts a server on an executor. `name` identifies it in log lines. Dropping the future
    /// undoes the start.
    ///
    /// Closing the transport asks the server to exit; 2 s after SIGTERM it is killed.
    pub async fn launch(
        name: &str,
        command: &Command,
        executor: &dyn Executor,
        limits: &Limits,
    ) -> Result<Self, ServerFailure> {
        let start = command.start(|name| std::env::var_os(name))?;
        let process = shutdown::start_with_grace(executor, start).await?;
        Ok(ProcessTransport {
            name: name.into(),
            events: process.events(),
            process,
            stdout: LineSplitter::new(limits.message_bytes),
            stderr: LineSplitter::new(limits.stderr_line_bytes),
            received: VecDeque::new(),
            discovery: DiscoveryTimeout::new(limits.discovery),
            exit_code: None,
            last_sent: None,
            stdin_closed: Arc::default(),
            limits: limits.clone(),
            exit_deadline: None,
            finished: false,
            ended: false,
            diagnostics: Arc::default(),
        })
    }

    /// Returns the diagnostics of the server.
    #[must_use]
    pub fn diagnostics(&self) -> Arc<ServerDiagnostics> {
        Arc::clone(&self.diagnostics)
    }

    fn on_output(&mut self, stream: Stream, bytes: Bytes) {
        if stream == Stream::Stderr {
            self.stderr.push(bytes);
            self.log_stderr();
        } else {
            self.stdout.push(bytes);
            self.parse_stdout();
        }
    }

    fn log_stderr(&mut self) {
        while let Some(line) = self.stderr.pop() {
            match line {
                Line::Complete(line) => {
                    let text = String::from_utf8_lossy(&line);
                    info!(server = &*self.name, "{text}");
                    self.diagnostics.record_stderr(&line);
                }
                Line::TooLong { bytes, .. } => {
                    let server = &*self.name;
                    debug!(server, bytes, "stderr line too long; discarded");
                }
            }
        }
    }

    fn parse_stdout(&mut self) {
        while let Some(line) = self.stdout.pop() {
            match line {
                Line::Complete(line) => match parse(&line) {
                    Ok(message) => self.received.push_back(message),
                    Err(error) => {
                        let server = &*self.name;
                        debug!(server, %error, line = %preview(&line), "not a message; skipped");
                        self.diagnostics.record_skipped(&line);
                    }
                },
                Line::TooLong { bytes, response_id } => {
                    warn!(server = &*self.name, bytes, "message too long; discarded");
                    let error = response_id.map(|id| oversized_response(bytes, &id));
                    match error.and_then(|error| parse(&error).ok()) {
                        Some(error) => self.received.push_back(error),
                        None => self
                            .diagnostics
                            .record_skipped(b"(a line that is too long)"),
                    }
                }
            }
        }
    }

    /// Ends the input. Unterminated last lines count as lines.
    fn finish(&mut self) {
        self.stdout.finish();
        self.parse_stdout();
        self.stderr.finish();
        self.log_stderr();
        self.finished = true;
    }

    fn on_event(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Output { stream, bytes, .. }) => self.on_output(stream, bytes),
            // Leftover processes may still write messages, so only `Closed` ends the stream.
            Some(Event::Exited { code, .. }) => self.exit_code = Some(code),
            Some(Event::Closed { .. }) => {
                self.finish();
                self.ended = true;
                self.diagnostics.set_end_reason(EndReason::Exited {
                    code: self.exit_code.unwrap_or(-1),
                    last_stderr: self.diagnostics.last_stderr(),
                });
            }
            Some(Event::Failed { error }) => {
                self.finish();
                self.ended = true;
                let reason = error.to_string().into();
                self.diagnostics.set_end_reason(EndReason::Lost { reason });
            }
            None => self.finished = true,
        }
    }
}

async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl Transport<RoleClient> for ProcessTransport {
    type Error = TransportError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        self.discovery.on_send(&item, Instant::now());
        let process = self.process.clone();
        let stdin_closed = Arc::clone(&self.stdin_closed);
        // rmcp polls these futures from tasks in any order. Each waits until its
        // predecessor is dropped, so messages are written in the order of `send` calls.
        let (done, next) = oneshot::channel::<Infallible>();
        let previous = self.last_sent.replace(next);
        async move {
            let _done = done;
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            if let Some(previous) = previous {
                let _ = previous.await;
            }
            if let Err(error) = process.write(line).await {
                // An exited or lost process reports the reason in its events. Otherwise
                // the exit deadline ends the transport.
                debug!(%error, "cannot write a message to stdin");
                stdin_closed.notify_one();
            }
            Ok(())
        }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(message) = self.received.pop_front() {
                if self.discovery.on_receive(&message) {
                    return Some(message);
                }
            }
            if self.finished {
                return None;
            }
            tokio::select! {
                biased;
                () = self.stdin_closed.notified() => {
                    let deadline = Instant::now() + self.limits.exit_after_stdin_closed;
                    self.exit_deadline.get_or_insert(deadline);
                }
                () = sleep_until_some(self.discovery.deadline()) => {
                    if let Some(error) = self.discovery.poll_timeout(Instant::now()) {
                        let timed_out = &self.diagnostics.discovery_timed_out;
                        timed_out.store(true, Ordering::Relaxed);
                        return Some(error);
                    }
                }
                () = sleep_until_some(self.exit_deadline) => {
                    self.finish();
                    self.diagnostics.set_end_reason(EndReason::StdinClosed);
                }
                // Polled last: constant output must not postpone the deadlines.
                event = self.events.next() => self.on_event(event),
            }
        }
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.diagnostics.set_end_reason(EndReason::Closed);
        self.finished = true;
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let shutdown = shutdown::shut_down(&self.process, self.limits.stdin_close_grace);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                ended = &mut shutdown => return Ok(ended?),
                // Drain the output: a full pipe would keep the process from exiting.
                Some(_) = self.events.next() => {}
            }
        }
    }
}

impl Drop for ProcessTransport {
    fn drop(&mut self) {
        self.diagnostics.set_end_reason(EndReason::Closed);
        // Dropping the handle terminates a running process, but not the leftover
        // processes of one that has exited.
        if let Ok(runtime) = Handle::try_current()
            && !self.ended
        {
            let process = self.process.clone();
            let grace = self.limits.stdin_close_grace;
            runtime.spawn(async move {
                let shutdown = shutdown::shut_down(&process, grace);
                let _ = timeout(TERMINATE_TIMEOUT, shutdown).await;
            });
        }
    }
}
