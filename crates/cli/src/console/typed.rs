//! What comes in here.

use std::{
    fmt,
    io::{IsTerminal as _, Read},
    str::FromStr,
    thread,
};

use bytes::Bytes;
use outpost_client::{Error, Process};
use tokio::sync::mpsc;

const READ_BYTES: usize = 64 * 1024;
/// Pieces that are read ahead of a process that takes its time.
const AHEAD: usize = 2;

/// What is typed here, or comes through a pipe.
pub(crate) struct Typed {
    /// Closed at the end of the input.
    pieces: mpsc::Receiver<Bytes>,
    /// Ends the conversation when it is typed.
    detach: Option<Key>,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The input has ended, or the process takes no more.
    Input,
    /// Somebody typed the key for it.
    Detached,
}

impl Typed {
    /// Begins to read standard input. The thread can't be stopped while it
    /// waits; it ends with the program.
    pub(crate) fn read(detach: Option<Key>) -> Self {
        let (sender, pieces) = mpsc::channel(AHEAD);
        thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut buffer = vec![0; READ_BYTES];
            loop {
                match stdin.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => {
                        let piece = Bytes::copy_from_slice(&buffer[..count]);
                        if sender.blocking_send(piece).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    // A terminal that has gone is an end like any other.
                    Err(_) => return,
                }
            }
        });
        Typed { pieces, detach }
    }

    /// Whether there is anything to pass on: a person at a terminal has to ask
    /// for it, a file or a pipe is there to be read.
    pub(crate) fn is_wanted(asked: bool) -> bool {
        asked || !std::io::stdin().is_terminal()
    }

    /// Passes everything on to the process, in order.
    pub(crate) async fn pass_on(mut self, process: &Process) -> Result<End, Error> {
        while let Some(mut piece) = self.pieces.recv().await {
            let key = self.detach.and_then(|key| key.find(&piece));
            if let Some(at) = key {
                piece.truncate(at);
            }
            match process.write(piece).await {
                // It has stopped listening, or has ended; its exit says more.
                Err(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => {
                    return Ok(End::Input);
                }
                written => written?,
            }
            if key.is_some() {
                return Ok(End::Detached);
            }
        }
        match process.close_stdin().await {
            Err(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => Ok(End::Input),
            // Older servers can't end an input; the process goes on without.
            Err(Error::NotAnnounced { .. }) | Ok(()) => Ok(End::Input),
            Err(error) => Err(error),
        }
    }
}

/// A key with Ctrl held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u8);

impl Key {
    /// Ctrl-], which nothing else uses.
    pub(crate) const DETACH: Key = Key(0x1d);

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
}
