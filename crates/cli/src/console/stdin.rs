//! Forwards stdin to a process.

use std::{
    fmt,
    io::{self, IsTerminal as _, Read},
    str::FromStr,
    thread,
    time::Duration,
};

use bytes::Bytes;
use outpost_client::{ConnectionState, Error, Process};
use tokio::{
    io::AsyncWriteExt as _,
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

const READ_BYTES: usize = 64 * 1024;
/// Chunks to read ahead of a slow process.
const READ_AHEAD: usize = 2;
/// Chunks to read ahead if there is an escape key, which must not wait behind input that can't be
/// delivered. More than a person types before pressing the key.
const READ_AHEAD_WITH_KEY: usize = 1024;
/// Timeout for delivering the input before the escape key.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Reads stdin on a thread.
pub(crate) struct StdinForwarder {
    /// Closed at the end of the input.
    chunks: mpsc::Receiver<Bytes>,
    /// Signals the escape key, apart from the chunks, which may be blocked. None once the reader
    /// has ended without it.
    escaped: Option<oneshot::Receiver<()>>,
}

/// Why forwarding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// End of the input, or the process closed its stdin.
    Eof,
    /// The escape key was pressed.
    Escaped,
}

/// A key that ends the attachment.
pub(crate) enum EscapeKey {
    /// Detaches. The end of the input, a closed terminal, does too.
    Detach(Key),
    /// Gives up while the connection is lost; an ordinary key otherwise.
    GiveUp(Key, watch::Receiver<ConnectionState>),
}

impl EscapeKey {
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let key = match self {
            EscapeKey::GiveUp(_, state) if *state.borrow() == ConnectionState::Connected => {
                return None;
            }
            EscapeKey::Detach(key) | EscapeKey::GiveUp(key, _) => key,
        };
        bytes.iter().position(|byte| *byte == key.0)
    }
}

impl StdinForwarder {
    /// Starts to read stdin. The thread can't be interrupted; it ends with the program.
    pub(crate) fn read(escape_key: Option<EscapeKey>) -> Self {
        let read_ahead = match escape_key {
            Some(_) => READ_AHEAD_WITH_KEY,
            None => READ_AHEAD,
        };
        let (sender, chunks) = mpsc::channel(read_ahead);
        let (escape_sender, escaped) = oneshot::channel();
        thread::spawn(move || read_all(&sender, escape_key, escape_sender));
        StdinForwarder {
            chunks,
            escaped: Some(escaped),
        }
    }

    /// Returns whether stdin is forwarded: a file or pipe always, a terminal only on request.
    pub(crate) fn is_wanted(asked: bool) -> bool {
        asked || !std::io::stdin().is_terminal()
    }

    /// Forwards all input to the process, in order.
    pub(crate) async fn forward(&mut self, process: &Process) -> Result<InputEnd, Error> {
        let StdinForwarder { chunks, escaped } = self;
        let writing = write(chunks, process);
        tokio::pin!(writing);
        let all = tokio::select! {
            biased;
            all = &mut writing => all?,
            () = escape(escaped) => {
                let _ = timeout(DRAIN_TIMEOUT, writing).await;
                return Ok(InputEnd::Escaped);
            }
        };
        if !all {
            return Ok(InputEnd::Eof);
        }
        // The reader has ended, so the escape key was pressed by now or never.
        if let Some(escaped) = escaped.take()
            && escaped.await.is_ok()
        {
            return Ok(InputEnd::Escaped);
        }
        match process.close_stdin().await {
            Ok(()) | Err(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => {}
            // Older servers can't close stdin; the process continues without the end of input.
            Err(Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(InputEnd::Eof)
    }

    /// Waits for the escape key; forever if there is none.
    pub(crate) async fn escaped(&mut self) {
        escape(&mut self.escaped).await;
    }
}

/// Waits for the escape key; forever if it can no longer be pressed.
async fn escape(escaped: &mut Option<oneshot::Receiver<()>>) {
    if let Some(escape) = escaped {
        let pressed = escape.await.is_ok();
        *escaped = None;
        if pressed {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Writes chunk after chunk; the client merges chunks that arrive during a write. Returns false if
/// the process closed its stdin or ended.
async fn write(chunks: &mut mpsc::Receiver<Bytes>, process: &Process) -> Result<bool, Error> {
    let mut input = process.stdin();
    let writing = async {
        while let Some(chunk) = chunks.recv().await {
            input.write_all(&chunk).await?;
        }
        input.flush().await
    };
    let written: io::Result<()> = writing.await;
    let Err(error) = written else {
        return Ok(true);
    };
    match error.downcast::<Error>() {
        // The process's exit tells more.
        Ok(Error::StdinClosed { .. } | Error::UnknownProcess { .. }) => {
            chunks.close();
            Ok(false)
        }
        Ok(error) => Err(error),
        Err(error) => Err(Error::Disconnected {
            reason: error.to_string().into(),
        }),
    }
}

/// Reads until the end of the input or the escape key.
fn read_all(
    sender: &mpsc::Sender<Bytes>,
    escape_key: Option<EscapeKey>,
    escape_sender: oneshot::Sender<()>,
) {
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let chunk = match stdin.read(&mut buffer) {
            Ok(count) if count > 0 => &buffer[..count],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // A closed terminal counts as the end of the input.
            Ok(_) | Err(_) => {
                if let Some(EscapeKey::Detach(_)) = escape_key {
                    let _ = escape_sender.send(());
                }
                return;
            }
        };
        if let Some(at) = escape_key.as_ref().and_then(|key| key.find(chunk)) {
            let _ = escape_sender.send(());
            let _ = sender.blocking_send(Bytes::copy_from_slice(&chunk[..at]));
            return;
        }
        let sent = sender.blocking_send(Bytes::copy_from_slice(chunk));
        // Continue to look for the escape key even if the process takes no input.
        if sent.is_err() && escape_key.is_none() {
            return;
        }
    }
}

/// A key pressed with Ctrl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u8);

impl Key {
    /// Ctrl-], which programs rarely use.
    pub(crate) const DETACH: Key = Key(0x1d);

    /// The byte that a terminal sends for it.
    pub(super) fn byte(self) -> u8 {
        self.0
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
    fn keys_use_caret_notation() {
        assert_eq!("^]".parse(), Ok(Key::DETACH));
        assert_eq!("^q".parse(), Ok(Key(17)));
        assert_eq!(Key::DETACH.to_string(), "^]");
        assert!("]".parse::<Key>().is_err());
        assert!("^qq".parse::<Key>().is_err());
        assert!("^ü".parse::<Key>().is_err());
    }

    #[test]
    fn key_is_found_in_input() {
        let escape_key = EscapeKey::Detach(Key::DETACH);
        assert_eq!(escape_key.find(b"ab\x1dc"), Some(2));
        assert_eq!(escape_key.find(b"abc"), None);
    }

    #[test]
    fn give_up_key_is_ordinary_while_connected() {
        let (state, seen) = watch::channel(ConnectionState::Connected);
        let escape_key = EscapeKey::GiveUp(Key::DETACH, seen);
        assert_eq!(escape_key.find(b"\x1d"), None);
        state.send_replace(ConnectionState::Recovering);
        assert_eq!(escape_key.find(b"a\x1d"), Some(1));
    }
}
