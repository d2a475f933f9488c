//! What comes in here.

use std::{
    fmt,
    io::{self, IsTerminal as _, Read},
    str::FromStr,
    thread,
    time::Duration,
};

use bytes::Bytes;
use outpost_client::{Error, Process, Standing};
use tokio::{
    io::AsyncWriteExt as _,
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

const READ_BYTES: usize = 64 * 1024;
/// Pieces that are read ahead of a process that takes its time.
const AHEAD: usize = 2;
/// The same where a key is looked for: it must not wait behind what can't be
/// passed on. A person types less than this before trying the key.
const AHEAD_OF_KEY: usize = 1024;
/// How long what was typed before the key may take to reach the process.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is typed here, or comes through a pipe.
pub(crate) struct Typed {
    /// Closed at the end of the input.
    pieces: mpsc::Receiver<Bytes>,
    /// The wish to leave, apart from the pieces: they may have to wait. None once
    /// it is known that nobody will have it.
    left: Option<oneshot::Receiver<()>>,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The input has ended, or the process takes no more.
    Input,
    /// Somebody typed the key for it.
    Left,
}

/// What is a wish to leave.
pub(crate) enum WayOut {
    /// A key, and the end of the input: a terminal that is gone.
    Detach(Key),
    /// A key, while the connection is lost; otherwise it is like any other.
    GiveUp(Key, watch::Receiver<Standing>),
}

impl WayOut {
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            WayOut::Detach(key) => key.find(bytes),
            WayOut::GiveUp(key, standing) => {
                let lost = *standing.borrow() != Standing::Connected;
                key.find(bytes).filter(|_| lost)
            }
        }
    }
}

impl Typed {
    /// Begins to read standard input. The thread can't be stopped while it
    /// waits; it ends with the program.
    pub(crate) fn read(way_out: Option<WayOut>) -> Self {
        let ahead = match way_out {
            Some(_) => AHEAD_OF_KEY,
            None => AHEAD,
        };
        let (sender, pieces) = mpsc::channel(ahead);
        let (leave, left) = oneshot::channel();
        thread::spawn(move || read_all(&sender, way_out, leave));
        Typed {
            pieces,
            left: Some(left),
        }
    }

    /// Whether there is anything to pass on: a person at a terminal has to ask
    /// for it, a file or a pipe is there to be read.
    pub(crate) fn is_wanted(asked: bool) -> bool {
        asked || !std::io::stdin().is_terminal()
    }

    /// Passes everything on to the process, in order.
    pub(crate) async fn pass_on(&mut self, process: &Process) -> Result<End, Error> {
        let Typed { pieces, left } = self;
        let writing = write(pieces, process);
        tokio::pin!(writing);
        let all = tokio::select! {
            biased;
            all = &mut writing => all?,
            () = wish(left) => {
                let _ = timeout(LAST_WORDS, writing).await;
                return Ok(End::Left);
            }
        };
        if !all {
            return Ok(End::Input);
        }
        // The reader has ended, so it is known by now whether there was a wish.
        if let Some(left) = left.take()
            && left.await.is_ok()
        {
            return Ok(End::Left);
        }
        match process.close_stdin().await {
            Err(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => Ok(End::Input),
            // Older servers can't end an input; the process goes on without.
            Err(Error::NotAnnounced { .. }) | Ok(()) => Ok(End::Input),
            Err(error) => Err(error),
        }
    }

    /// Waits for the wish to leave, for ever if nobody has it.
    pub(crate) async fn left(&mut self) {
        wish(&mut self.left).await;
    }
}

/// Resolves with the wish to leave; never if there won't be one.
async fn wish(left: &mut Option<oneshot::Receiver<()>>) {
    if let Some(wish) = left {
        let wished = wish.await.is_ok();
        *left = None;
        if wished {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Writes piece after piece; says whether it was all of them, or the process
/// stopped listening.
async fn write(pieces: &mut mpsc::Receiver<Bytes>, process: &Process) -> Result<bool, Error> {
    let Err(error) = write_all(pieces, process).await else {
        return Ok(true);
    };
    match error.downcast::<Error>() {
        // It has stopped listening, or has ended; its exit says more.
        Ok(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => {
            pieces.close();
            Ok(false)
        }
        Ok(error) => Err(error),
        Err(error) => Err(Error::Disconnected {
            reason: error.to_string().into(),
        }),
    }
}

/// While one write is on its way, what comes meanwhile is gathered for the next.
async fn write_all(pieces: &mut mpsc::Receiver<Bytes>, process: &Process) -> io::Result<()> {
    let mut input = process.stdin();
    while let Some(piece) = pieces.recv().await {
        input.write_all(&piece).await?;
    }
    input.flush().await
}

/// Reads until there is nothing more, or somebody wishes to leave.
fn read_all(sender: &mpsc::Sender<Bytes>, way_out: Option<WayOut>, leave: oneshot::Sender<()>) {
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let piece = match stdin.read(&mut buffer) {
            Ok(count) if count > 0 => &buffer[..count],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // A terminal that has gone is an end like any other.
            Ok(_) | Err(_) => {
                if let Some(WayOut::Detach(_)) = way_out {
                    let _ = leave.send(());
                }
                return;
            }
        };
        if let Some(at) = way_out.as_ref().and_then(|way_out| way_out.find(piece)) {
            let _ = leave.send(());
            let _ = sender.blocking_send(Bytes::copy_from_slice(&piece[..at]));
            return;
        }
        let sent = sender.blocking_send(Bytes::copy_from_slice(piece));
        // What nobody takes may still be the key.
        if sent.is_err() && way_out.is_none() {
            return;
        }
    }
}

/// A key with Ctrl held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u8);

impl Key {
    /// Ctrl-], which nothing else uses.
    pub(crate) const DETACH: Key = Key(0x1d);

    /// What a terminal sends for it.
    pub(super) fn byte(self) -> u8 {
        self.0
    }

    fn find(self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| *byte == self.0)
    }
}

impl FromStr for Key {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = text.strip_prefix('^').map(str::as_bytes);
        match key {
            Some([key @ (b'@'..=b'_' | b'a'..=b'z')]) => Ok(Key(key.to_ascii_uppercase() - b'@')),
            _ => Err("expected a key with Ctrl, such as ^] or ^q"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "^{}", char::from(self.0 + b'@'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_with_a_caret() {
        assert_eq!("^]".parse(), Ok(Key::DETACH));
        assert_eq!("^q".parse(), Ok(Key(17)));
        assert_eq!(Key::DETACH.to_string(), "^]");
        assert!("]".parse::<Key>().is_err());
        assert!("^qq".parse::<Key>().is_err());
        assert!("^ü".parse::<Key>().is_err());
    }

    #[test]
    fn a_key_is_found_where_it_was_typed() {
        assert_eq!(Key::DETACH.find(b"ab\x1dc"), Some(2));
        assert_eq!(Key::DETACH.find(b"abc"), None);
    }

    #[test]
    fn the_key_to_give_up_is_like_any_other_while_there_is_a_connection() {
        let (standing, seen) = watch::channel(Standing::Connected);
        let way_out = WayOut::GiveUp(Key::DETACH, seen);
        assert_eq!(way_out.find(b"\x1d"), None);
        standing.send_replace(Standing::Recovering);
        assert_eq!(way_out.find(b"a\x1d"), Some(1));
    }
}
