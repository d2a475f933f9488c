//! The input of a process, to be written to.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::Process;
use crate::Error;

/// The most that is taken over in one go.
const PIECE_BYTES: usize = 64 * 1024;

type Sending = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Writes to the input of a process. One piece is on its way while the next is
/// collected; [`flush`](tokio::io::AsyncWriteExt::flush) waits until all are
/// accepted, [`shutdown`](tokio::io::AsyncWriteExt::shutdown) ends the input.
pub struct Stdin {
    process: Process,
    sending: Option<Sending>,
    closing: bool,
}

impl Stdin {
    pub(super) fn new(process: Process) -> Self {
        Stdin {
            process,
            sending: None,
            closing: false,
        }
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(sending) = &mut self.sending else {
            return Poll::Ready(Ok(()));
        };
        let sent = ready!(sending.as_mut().poll(cx));
        self.sending = None;
        Poll::Ready(sent.map_err(Into::into))
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_sent(cx))?;
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let piece = &buf[..buf.len().min(PIECE_BYTES)];
        let bytes = Bytes::copy_from_slice(piece);
        let process = this.process.clone();
        this.sending = Some(Box::pin(async move { process.write(bytes).await }));
        // It is under way from now on, and not only when somebody asks again. What
        // it has to say already is said at the next call.
        if let Poll::Ready(Err(error)) = this.poll_sent(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_sent(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closing {
            ready!(this.poll_sent(cx))?;
            let process = this.process.clone();
            this.sending = Some(Box::pin(async move { process.close_stdin().await }));
            this.closing = true;
        }
        this.poll_sent(cx)
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}
