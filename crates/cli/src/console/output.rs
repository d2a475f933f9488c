//! Writes the output of a process to stdout and stderr.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsFd,
    time::Duration,
};

use bytes::Bytes;
use outpost_client::{Event, Events, Stream};
use tokio::{
    sync::watch,
    task::block_in_place,
    time::{Instant, timeout_at},
};

use super::Outcome;

/// Amount of earlier output that is shown when attaching: more than a screen.
const EARLIER_BYTES: usize = 64 * 1024;

/// A write of this size indicates much output, for which a larger pipe buffer behind stdout pays
/// off.
const LARGE_WRITE_BYTES: usize = 64 * 1024;
const LARGE_PIPE_BYTES: usize = 1024 * 1024;

/// Read timeout after the exit if leftover processes hold the output open: enough for the rest
/// of a pipeline, but not the lifetime of a daemon.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Unbuffered stdout and stderr.
struct Streams {
    stdout: File,
    stderr: File,
    grown: bool,
}

impl Streams {
    fn ours() -> io::Result<Self> {
        let file = |stream: &dyn AsFd| Ok::<_, io::Error>(File::from(rustix::io::dup(stream)?));
        Ok(Streams {
            stdout: file(&io::stdout())?,
            stderr: file(&io::stderr())?,
            grown: false,
        })
    }

    /// Blocks while stdout is blocked, for example by a pager.
    fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= LARGE_WRITE_BYTES && !self.grown {
            self.grown = true;
            // Fails if stdout isn't a pipe or the user's pipe limit is reached.
            let _ = rustix::pipe::fcntl_setpipe_size(&self.stdout, LARGE_PIPE_BYTES);
        }
        block_in_place(|| match stream {
            Stream::Stdout | Stream::Pty => self.stdout.write_all(bytes),
            Stream::Stderr => self.stderr.write_all(bytes),
        })
    }

    /// Writes the last [`EARLIER_BYTES`] of the collected output, and clears it.
    fn write_earlier(&mut self, earlier: &mut Vec<(Stream, Bytes)>) -> io::Result<()> {
        let mut left = EARLIER_BYTES;
        let mut from = earlier.len();
        while from > 0 && left > 0 {
            from -= 1;
            let (_, bytes) = &mut earlier[from];
            let kept = bytes.len().min(left);
            *bytes = bytes.slice(bytes.len() - kept..);
            left -= kept;
        }
        for (stream, bytes) in earlier.drain(..).skip(from) {
            self.write(stream, &bytes)?;
        }
        Ok(())
    }
}

/// Writes the output of a process.
pub(super) struct OutputPrinter {
    /// Events with a lower number happened before attaching; only the end of their output is shown.
    pub(super) since: u64,
    /// Whether to read the output of leftover processes without a time limit.
    pub(super) drains_forever: bool,
    /// Deadline of the process.
    pub(super) until: Option<Instant>,
    /// Receives the exit code once all earlier output is written.
    pub(super) exit: watch::Sender<Option<i32>>,
}

impl OutputPrinter {
    /// Writes all output until the process is closed, or until leftover processes exceed the time
    /// limit.
    pub(super) async fn print(self, mut events: Events) -> Outcome {
        let printed = self.try_print(&mut events).await;
        printed.unwrap_or_else(Outcome::OutputError)
    }

    async fn try_print(self, events: &mut Events) -> io::Result<Outcome> {
        let mut streams = Streams::ours()?;
        let mut earlier = Vec::new();
        let mut code = None;
        let mut deadline = None;
        while let Some(event) = next(events, deadline).await {
            match event {
                Err(EventTimeout) => {
                    return Ok(Outcome::ExitedWithLeftovers(code.unwrap_or_default()));
                }
                Ok(Event::Output { seq, stream, bytes }) if seq < self.since => {
                    earlier.push((stream, bytes));
                    if seq + 1 == self.since {
                        streams.write_earlier(&mut earlier)?;
                    }
                }
                Ok(Event::Output { stream, bytes, .. }) => {
                    streams.write_earlier(&mut earlier)?;
                    streams.write(stream, &bytes)?;
                }
                Ok(Event::Exited { code: exit, .. }) => {
                    code = Some(exit);
                    if !self.drains_forever {
                        let latest = Instant::now() + DRAIN_TIMEOUT;
                        deadline = Some(self.until.map_or(latest, |until| until.min(latest)));
                    }
                    let written = streams.write_earlier(&mut earlier);
                    self.exit.send_replace(code);
                    written?;
                }
                Ok(Event::Closed { .. }) => break,
                Ok(Event::Failed { error }) => {
                    return Ok(match code {
                        // The exit code is known, and leftover processes are terminated anyway.
                        Some(code) if !self.drains_forever => Outcome::ExitedWithLeftovers(code),
                        _ => Outcome::Failed(error.to_string()),
                    });
                }
            }
        }
        Ok(match code {
            Some(code) => Outcome::Exited(code),
            None => Outcome::Failed("the process was closed without an exit code".to_owned()),
        })
    }
}

/// The next event before the deadline.
async fn next(
    events: &mut Events,
    deadline: Option<Instant>,
) -> Option<Result<Event, EventTimeout>> {
    let Some(deadline) = deadline else {
        return events.next().await.map(Ok);
    };
    // Without this check, constant output would defer the deadline forever.
    if Instant::now() >= deadline {
        return Some(Err(EventTimeout));
    }
    match timeout_at(deadline, events.next()).await {
        Ok(event) => event.map(Ok),
        Err(_) => Some(Err(EventTimeout)),
    }
}

/// The error of a wait for an event that reached its deadline.
struct EventTimeout;
