//! What is said beside the messages, to whoever listens.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::timeout,
};

/// Bytes that wait to be written.
const WAITING: u32 = 1024 * 1024;
/// Pieces that do.
const PIECES: usize = 1024;

/// A way out that nobody has to listen at: what doesn't fit is left out, and the
/// messages go on. How much that was is said once somebody listens again.
pub(super) struct Asides {
    /// Closed when the writer has failed, which nobody minds.
    pieces: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    /// How many more bytes may wait.
    room: Arc<Semaphore>,
    /// Ends behind the last piece, once there is no sender.
    writing: JoinHandle<()>,
    gap: Gap,
}

impl Asides {
    pub(super) fn to(mut write: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (pieces, mut waiting) = mpsc::channel::<(Bytes, OwnedSemaphorePermit)>(PIECES);
        let writing = tokio::spawn(async move {
            while let Some((piece, _room)) = waiting.recv().await {
                if write.write_all(&piece).await.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        });
        Asides {
            pieces,
            room: Arc::new(Semaphore::new(WAITING as usize)),
            writing,
            gap: Gap::default(),
        }
    }

    /// Says these bytes if there is room for them. Waits for nobody.
    pub(super) fn say(&mut self, bytes: Bytes) {
        let piece = self.gap.told_before(bytes.clone());
        if self.put(piece) {
            self.gap.ends_behind(&bytes);
        } else {
            self.gap.bytes += bytes.len() as u64;
        }
    }

    /// Says a line of our own.
    pub(super) fn note(&mut self, words: &str) {
        self.say(line(words));
    }

    /// Says a last line, for which there is always room, and waits until everything is
    /// written, or that takes too long.
    pub(super) async fn finish(self, last: Option<&str>, within: Duration) {
        let Asides {
            pieces,
            room,
            mut writing,
            gap,
        } = self;
        let last = last.map_or_else(Bytes::new, line);
        let ending = async {
            let last = gap.told_before(last);
            if !last.is_empty()
                && let Ok(room) = room.acquire_many_owned(size(&last)).await
            {
                // Where nobody can be told, nobody minds.
                let _ = pieces.send((last, room)).await;
            }
            drop(pieces);
            let _ = (&mut writing).await;
        };
        if timeout(within, ending).await.is_err() {
            writing.abort();
        }
    }

    fn put(&self, piece: Bytes) -> bool {
        let room = Arc::clone(&self.room).try_acquire_many_owned(size(&piece));
        room.is_ok_and(|room| self.pieces.try_send((piece, room)).is_ok())
    }
}

/// A line of our own.
fn line(words: &str) -> Bytes {
    format!("outpost: {words}\n").into()
}

/// How much room a piece takes. One that is longer than all there is may be said
/// alone.
fn size(piece: &[u8]) -> u32 {
    u32::try_from(piece.len()).unwrap_or(WAITING).min(WAITING)
}

/// What was left out since something was said.
#[derive(Debug, Default)]
struct Gap {
    bytes: u64,
    /// Whether what was said last is no whole line.
    open: bool,
}

impl Gap {
    /// The same bytes, behind a line about what is missing before them.
    fn told_before(&self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 {
            return bytes;
        }
        let end = if self.open { "\n" } else { "" };
        let missing = self.bytes;
        let told =
            format!("{end}outpost: {missing} bytes were left out here, as nobody read them\n");
        [told.as_bytes(), &bytes].concat().into()
    }

    fn ends_behind(&mut self, bytes: &[u8]) {
        self.open = bytes.last().is_some_and(|last| *last != b'\n');
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn everything_is_said_while_somebody_listens() {
        let (ours, mut theirs) = duplex(16);
        let mut asides = Asides::to(ours);
        let listening = tokio::spawn(async move {
            let mut heard = String::new();
            theirs.read_to_string(&mut heard).await.map(|_| heard)
        });
        asides.say("a longer line than fits\n".into());
        asides.note("ours");
        asides.finish(Some("last"), LONG).await;
        let heard = listening.await.unwrap().unwrap();
        assert_eq!(
            heard,
            "a longer line than fits\noutpost: ours\noutpost: last\n"
        );
    }

    #[tokio::test]
    async fn who_does_not_listen_holds_up_nobody_and_is_told() {
        let (ours, mut theirs) = duplex(16);
        let mut asides = Asides::to(ours);
        let line = Bytes::from(vec![b'x'; WAITING as usize / 2]);
        for _ in 0..5 {
            asides.say(line.clone());
        }
        let mut heard = vec![0; WAITING as usize];
        theirs.read_exact(&mut heard).await.unwrap();
        let listening = tokio::spawn(async move {
            let mut heard = String::new();
            theirs.read_to_string(&mut heard).await.map(|_| heard)
        });
        // The room is given back behind the last byte, so it may not be there yet.
        let whole = Arc::clone(&asides.room).acquire_many_owned(WAITING).await;
        drop(whole);
        asides.say("on\n".into());
        asides.finish(None, LONG).await;
        let heard = listening.await.unwrap().unwrap();
        let missing = line.len() * 3;
        assert_eq!(
            heard,
            format!("\noutpost: {missing} bytes were left out here, as nobody read them\non\n")
        );
    }

    #[tokio::test]
    async fn the_last_word_is_said_whatever_is_missing_before() {
        let (ours, mut theirs) = duplex(16);
        let mut asides = Asides::to(ours);
        asides.say(vec![b'x'; WAITING as usize].into());
        asides.say("lost".into());
        let listening = tokio::spawn(async move {
            let mut heard = String::new();
            theirs.read_to_string(&mut heard).await.map(|_| heard)
        });
        asides.finish(Some("last"), LONG).await;
        let heard = listening.await.unwrap().unwrap();
        assert_eq!(
            heard.trim_start_matches('x'),
            "\noutpost: 4 bytes were left out here, as nobody read them\noutpost: last\n"
        );
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_who_does_not_listen() {
        let (ours, _theirs) = duplex(16);
        let mut asides = Asides::to(ours);
        asides.say(vec![b'x'; 100].into());
        asides.finish(None, Duration::from_millis(10)).await;
    }
}
