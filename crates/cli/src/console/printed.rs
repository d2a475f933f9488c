//! What comes out of a process.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsFd,
    time::Duration,
};

use bytes::Bytes;
use outpost_client::{Event, Events, StreamName};
use tokio::{
    sync::watch,
    task::block_in_place,
    time::{Instant, timeout_at},
};

use super::Ending;

/// How much of what a process wrote before is shown to who joins it: more than
/// a screen holds, and no flood.
const BEFORE_BYTES: usize = 64 * 1024;

/// What is written at once by a process that has much to say; then it is worth
/// giving the pipe behind us more room.
const SURGE_BYTES: usize = 64 * 1024;
const GROWN_PIPE: usize = 1024 * 1024;

/// How long the output of a process that has exited is listened to if somebody
/// else holds it: as long as the last of a pipeline may take, and not as long as
/// a daemon lives.
const LINGER: Duration = Duration::from_secs(2);

/// Standard output and standard error, without the buffer that looks for lines.
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

    /// Standard output may be a pager that waits for its reader, so this waits
    /// too.
    fn write(&mut self, stream: StreamName, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= SURGE_BYTES && !self.grown {
            self.grown = true;
            // Most often it isn't a pipe, or the user has enough large ones.
            let _ = rustix::pipe::fcntl_setpipe_size(&self.stdout, GROWN_PIPE);
        }
        block_in_place(|| match stream {
            StreamName::Stdout | StreamName::Pty => self.stdout.write_all(bytes),
            StreamName::Stderr => self.stderr.write_all(bytes),
        })
    }

    /// Writes the end of what was collected, and forgets it.
    fn write_last(&mut self, before: &mut Vec<(StreamName, Bytes)>) -> io::Result<()> {
        let mut left = BEFORE_BYTES;
        let mut from = before.len();
        while from > 0 && left > 0 {
            from -= 1;
            let (_, bytes) = &mut before[from];
            let kept = bytes.len().min(left);
            *bytes = bytes.slice(bytes.len() - kept..);
            left -= kept;
        }
        for (stream, bytes) in before.drain(..).skip(from) {
            self.write(stream, &bytes)?;
        }
        Ok(())
    }
}

/// How a process is listened to.
pub(super) struct Printed {
    /// What has a lower number happened before anybody looked; of that, the end
    /// is shown.
    pub(super) since: u64,
    /// Whether to listen, for as long as it takes, to what an exited process
    /// left running.
    pub(super) lingers: bool,
    /// When its time is over, if it has one.
    pub(super) until: Option<Instant>,
    /// Is told the exit code, once everything before it is written.
    pub(super) exit: watch::Sender<Option<i32>>,
}

/// Writes everything to stdout and stderr until the process is closed, or what it
/// left running has had its time.
pub(super) async fn print(events: &mut Events, how: Printed) -> Ending {
    let since = how.since;
    let mut streams = match Streams::ours() {
        Ok(streams) => streams,
        Err(error) => return Ending::Unheard(error),
    };
    let mut before = Vec::new();
    let mut code = None;
    let mut deadline = None;
    while let Some(next) = next(events, deadline).await {
        let Some(event) = next else {
            return Ending::Outlived(code.unwrap_or_default());
        };
        let written = match event {
            Event::Output { seq, stream, bytes } if seq < since => {
                before.push((stream, bytes));
                if seq + 1 == since {
                    streams.write_last(&mut before)
                } else {
                    Ok(())
                }
            }
            Event::Output { stream, bytes, .. } => {
                let last = streams.write_last(&mut before);
                last.and_then(|()| streams.write(stream, &bytes))
            }
            Event::Exited { code: exit, .. } => {
                code = Some(exit);
                let written = streams.write_last(&mut before);
                if !how.lingers {
                    let latest = Instant::now() + LINGER;
                    deadline = Some(how.until.map_or(latest, |until| until.min(latest)));
                }
                how.exit.send_replace(code);
                written
            }
            Event::Closed { .. } => break,
            Event::Failed { message } => {
                return match code {
                    // How it ended is known, and what it left running was to be ended.
                    Some(code) if !how.lingers => Ending::Outlived(code),
                    _ => Ending::Failed(message),
                };
            }
        };
        if let Err(error) = written {
            return Ending::Unheard(error);
        }
    }
    match code {
        Some(code) => Ending::Exited(code),
        None => Ending::Failed("it was closed without an exit".to_owned()),
    }
}

/// The next event, or none within the time there is.
async fn next(events: &mut Events, deadline: Option<Instant>) -> Option<Option<Event>> {
    let Some(deadline) = deadline else {
        return events.next().await.map(Some);
    };
    // One that never stops to write would never be waited for.
    if Instant::now() >= deadline {
        return Some(None);
    }
    match timeout_at(deadline, events.next()).await {
        Ok(event) => event.map(Some),
        Err(_) => Some(None),
    }
}
