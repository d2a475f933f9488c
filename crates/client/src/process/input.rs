//! The input of a process, to be written to.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio_util::sync::PollSender;

use super::{
    Process,
    inlet::{Chain, Piece, Written, gone},
};

/// The most that is taken over in one go.
const PIECE_BYTES: usize = 64 * 1024;

/// Writes to the input of a process. Some pieces are on their way while the next
/// is collected; [`flush`](tokio::io::AsyncWriteExt::flush) waits until all are
/// accepted, [`shutdown`](tokio::io::AsyncWriteExt::shutdown) ends the input.
/// Behind a piece that could not be written nothing is.
pub struct Stdin {
    process: Process,
    pieces: PollSender<Piece>,
    chain: Chain,
    /// What isn't known to be accepted, oldest first.
    under_way: VecDeque<Written>,
    closing: bool,
}

impl Stdin {
    pub(super) fn new(process: Process) -> Self {
        Stdin {
            pieces: PollSender::new(process.handle.inlet.sender()),
            process,
            chain: Chain::default(),
            under_way: VecDeque::new(),
            closing: false,
        }
    }

    /// Waits until everything is accepted.
    fn poll_accepted(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(oldest) = self.under_way.front_mut() {
            let written = ready!(Pin::new(oldest).poll(cx));
            self.under_way.pop_front();
            written.unwrap_or_else(|_| Err(gone()))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_queue(
        &mut self,
        cx: &mut Context<'_>,
        piece: impl FnOnce() -> Bytes,
        end: bool,
    ) -> Poll<io::Result<()>> {
        ready!(self.pieces.poll_reserve(cx)).map_err(|_| gone())?;
        let (piece, written) = Piece::new(piece(), end, Some(self.chain.clone()));
        self.pieces.send_item(piece).map_err(|_| gone())?;
        self.under_way.push_back(written);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // What the earlier ones have to say is said here; it isn't waited for.
        if let Poll::Ready(Err(error)) = this.poll_accepted(cx) {
            return Poll::Ready(Err(error));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let piece = &buf[..buf.len().min(PIECE_BYTES)];
        ready!(this.poll_queue(cx, || Bytes::copy_from_slice(piece), false))?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_accepted(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closing {
            ready!(this.poll_queue(cx, Bytes::new, true))?;
            this.closing = true;
        }
        this.poll_accepted(cx)
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}
