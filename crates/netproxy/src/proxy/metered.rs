//! A connection whose bytes are counted and bounded.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::{Activity, Record};

/// A connection to a target. Fails when the proxy has relayed more bytes than it may.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    /// The decision that allowed it.
    record: Option<Arc<Record>>,
    activity: Arc<Activity>,
    max_bytes: u64,
    idle: Arc<Idle>,
}

impl<S> Metered<S> {
    pub(crate) fn new(
        stream: S,
        record: Option<Arc<Record>>,
        activity: Arc<Activity>,
        max_bytes: u64,
    ) -> Self {
        Self {
            stream,
            record,
            activity,
            max_bytes,
            idle: Arc::new(Idle::new()),
        }
    }

    /// Returns the connection, to exchange bytes that are not the program's.
    pub(super) fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the time of its last traffic.
    pub(crate) fn idle(&self) -> Arc<Idle> {
        Arc::clone(&self.idle)
    }

    fn check(&self, total: u64) -> io::Result<()> {
        self.idle.touch();
        match total > self.max_bytes {
            true => Err(io::Error::other("the byte limit of the proxy is reached")),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = (buffer.filled().len() - before) as u64;
        let total = self.activity.add_received(self.record.as_deref(), bytes);
        Poll::Ready(self.check(total))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        let total = self
            .activity
            .add_sent(self.record.as_deref(), written as u64);
        Poll::Ready(self.check(total).map(|()| written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        let total = self
            .activity
            .add_sent(self.record.as_deref(), written as u64);
        Poll::Ready(self.check(total).map(|()| written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The time of the last traffic of a connection.
#[derive(Debug)]
pub(crate) struct Idle {
    since: Instant,
    /// Milliseconds after `since`.
    last: AtomicU64,
}

impl Idle {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn touch(&self) {
        let now = self.since.elapsed().as_millis() as u64;
        self.last.store(now, Ordering::Relaxed);
    }

    /// Waits until there was no traffic for this long.
    pub(crate) async fn reached(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let until = self.since + last + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}
