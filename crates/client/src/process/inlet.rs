//! The way into a process: what is to be written, in the order of the calls.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use tokio::{
    runtime::Handle as Runtime,
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use super::Reins;
use crate::Error;

/// How much goes into one write: two of them fit the queue of a server, so that
/// one can travel while another is taken.
const WRITE_BYTES: usize = 512 * 1024;

/// How many pieces may wait for the write under way; whoever has more waits too.
const AHEAD: usize = 16;

/// Something to be written.
pub(super) struct Piece {
    bytes: Bytes,
    /// The input ends here.
    end: bool,
    /// What has come of the pieces before this one.
    chain: Option<Chain>,
    /// Who has stopped waiting isn't told.
    done: oneshot::Sender<Result<(), Error>>,
}

/// Holds the first error of those who write piece by piece: behind a piece that
/// is missing nothing may follow.
pub(super) type Chain = Arc<OnceLock<Error>>;

/// What a piece has come to; the sender is gone if nobody can write any more.
pub(super) type Written = oneshot::Receiver<Result<(), Error>>;

impl Piece {
    pub(super) fn new(bytes: Bytes, end: bool, chain: Option<Chain>) -> (Self, Written) {
        let (done, written) = oneshot::channel();
        let piece = Piece {
            bytes,
            end,
            chain,
            done,
        };
        (piece, written)
    }

    fn broken(&self) -> Option<Error> {
        self.chain.as_ref()?.get().cloned()
    }

    fn tell(self, outcome: Result<(), Error>) {
        if let (Err(error), Some(chain)) = (&outcome, &self.chain) {
            let _ = chain.set(error.clone());
        }
        let _ = self.done.send(outcome);
    }
}

/// Writes what it is given, one write at a time, in a task of its own: whoever
/// gave it may stop waiting, and holds nobody up. The task ends with this.
pub(super) struct Inlet {
    reins: Arc<dyn Reins>,
    runtime: Runtime,
    /// There from the first write on; most processes see none.
    task: OnceLock<(mpsc::Sender<Piece>, AbortHandle)>,
}

impl Inlet {
    pub(super) fn new(reins: Arc<dyn Reins>, runtime: Runtime) -> Self {
        Inlet {
            reins,
            runtime,
            task: OnceLock::new(),
        }
    }

    /// Where to put pieces.
    pub(super) fn sender(&self) -> mpsc::Sender<Piece> {
        let (sender, _) = self.task.get_or_init(|| {
            let (sender, pieces) = mpsc::channel(AHEAD);
            let writing = write_all(Arc::clone(&self.reins), pieces);
            (sender, self.runtime.spawn(writing).abort_handle())
        });
        sender.clone()
    }

    /// Writes something and waits until it is accepted.
    pub(super) async fn write(&self, bytes: Bytes, end: bool) -> Result<(), Error> {
        let (piece, written) = Piece::new(bytes, end, None);
        self.sender().send(piece).await.map_err(|_| gone())?;
        written.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        if let Some((_, task)) = self.task.get() {
            task.abort();
        }
    }
}

/// Nobody is there any more who could write.
pub(super) fn gone() -> Error {
    Error::disconnected("the place is gone")
}

async fn write_all(reins: Arc<dyn Reins>, mut pieces: mpsc::Receiver<Piece>) {
    let mut held = None;
    loop {
        let first = match held.take() {
            Some(piece) => piece,
            None => match pieces.recv().await {
                Some(piece) => piece,
                None => return,
            },
        };
        if let Some(error) = first.broken() {
            first.tell(Err(error));
            continue;
        }
        let mut batch = vec![first];
        held = gather(&mut batch, &mut pieces);
        let outcome = write(reins.as_ref(), &batch).await;
        for piece in batch {
            piece.tell(outcome.clone());
        }
    }
}

/// Takes what waits already into the same write, as far as it fits; gives back
/// the piece that doesn't.
fn gather(batch: &mut Vec<Piece>, pieces: &mut mpsc::Receiver<Piece>) -> Option<Piece> {
    let mut size = batch[0].bytes.len();
    while !batch[0].end && size < WRITE_BYTES {
        let next = pieces.try_recv().ok()?;
        size += next.bytes.len();
        if next.end || size > WRITE_BYTES || next.broken().is_some() {
            return Some(next);
        }
        batch.push(next);
    }
    None
}

async fn write(reins: &dyn Reins, batch: &[Piece]) -> Result<(), Error> {
    let mut bytes = match batch {
        [piece] => piece.bytes.clone(),
        pieces => {
            let mut all = BytesMut::with_capacity(WRITE_BYTES);
            for piece in pieces {
                all.extend_from_slice(&piece.bytes);
            }
            all.freeze()
        }
    };
    let end = batch[0].end;
    loop {
        let next = bytes.split_to(bytes.len().min(WRITE_BYTES));
        reins.write(next, end && bytes.is_empty()).await?;
        if bytes.is_empty() {
            return Ok(());
        }
    }
}
