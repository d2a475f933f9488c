//! What comes out of a process.

use std::io::{self, Write};

use bytes::Bytes;
use outpost_client::{Event, Events, StreamName};
use tokio::task::block_in_place;

use super::Ending;

/// How much of what a process wrote before is shown to who joins it: more than
/// a screen holds, and no flood.
const BEFORE_BYTES: usize = 64 * 1024;

/// Writes everything to stdout and stderr until the process is closed. What has
/// a lower number than `since` happened before anybody looked; of that, the end
/// is shown.
pub(super) async fn print(events: &mut Events, since: u64) -> Ending {
    let mut before = Vec::new();
    let mut code = None;
    while let Some(event) = events.next().await {
        let written = match event {
            Event::Output { seq, stream, bytes } if seq < since => {
                before.push((stream, bytes));
                if seq + 1 == since {
                    write_last(&mut before)
                } else {
                    Ok(())
                }
            }
            Event::Output { stream, bytes, .. } => {
                write_last(&mut before).and_then(|()| write(stream, &bytes))
            }
            Event::Exited { code: exit, .. } => {
                code = Some(exit);
                write_last(&mut before)
            }
            Event::Closed { .. } => break,
            Event::Failed { message } => return Ending::Failed(message),
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

/// Writes the end of what was collected, and forgets it.
fn write_last(before: &mut Vec<(StreamName, Bytes)>) -> io::Result<()> {
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
        write(stream, &bytes)?;
    }
    Ok(())
}

/// Standard output may be a pager that waits for its reader, so this waits too.
fn write(stream: StreamName, bytes: &[u8]) -> io::Result<()> {
    block_in_place(|| match stream {
        StreamName::Stdout | StreamName::Pty => whole(&mut io::stdout().lock(), bytes),
        StreamName::Stderr => whole(&mut io::stderr().lock(), bytes),
    })
}

fn whole(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}
