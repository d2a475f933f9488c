//! Writes to stderr without blocking.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::timeout,
};

use crate::render::{out::note_line, visible::VisibleStream};

/// Maximum number of queued bytes. With what the pipe holds already, they fit into [`LARGE_PIPE_BYTES`].
const MAX_QUEUED_BYTES: u32 = 768 * 1024;
/// Capacity of the pipe at the end, for a reader that comes later. An unprivileged user can't have more.
const LARGE_PIPE_BYTES: usize = 1024 * 1024;
/// Maximum number of queued chunks.
const MAX_QUEUED_CHUNKS: usize = 1024;

/// Enlarges the pipe to stderr, so that the queue and the count of dropped bytes fit into it although it is
/// not read.
pub(super) fn enlarge_pipe() {
    // Fails if stderr isn't a pipe or the user's pipe limit is reached.
    let _ = rustix::pipe::fcntl_setpipe_size(std::io::stderr(), LARGE_PIPE_BYTES);
}

/// Queues output for stderr. Output that exceeds the queue is dropped, so that messages never wait
/// for a reader of stderr. The number of dropped bytes is written once there is space again.
pub(super) struct StderrWriter {
    /// Closed when the writer has failed; output is dropped then.
    chunks: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    /// Free space of the queue, in bytes.
    space: Arc<Semaphore>,
    /// Ends after the last chunk, once the sender is dropped.
    writer_task: JoinHandle<()>,
    /// Bytes dropped since the last write.
    dropped: u64,
    /// Whether the last write didn't end with a newline.
    open: bool,
    /// Makes the output visible; none if it is written as it is.
    visible: Option<VisibleStream>,
}

impl StderrWriter {
    pub(super) fn to(mut write: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (chunks, mut queued) =
            mpsc::channel::<(Bytes, OwnedSemaphorePermit)>(MAX_QUEUED_CHUNKS);
        let writer_task = tokio::spawn(async move {
            while let Some((chunk, _space)) = queued.recv().await {
                if write.write_all(&chunk).await.is_err() || write.flush().await.is_err() {
                    return;
                }
            }
        });
        StderrWriter {
            chunks,
            space: Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize)),
            writer_task,
            dropped: 0,
            open: false,
            visible: None,
        }
    }

    /// Makes the output visible, for a terminal.
    pub(super) fn for_terminal(self, is_terminal: bool) -> Self {
        StderrWriter {
            visible: is_terminal.then(VisibleStream::default),
            ..self
        }
    }

    /// Queues output of others, or drops it if there is no space.
    pub(super) fn write(&mut self, bytes: Bytes) {
        let bytes = match &mut self.visible {
            Some(visible) => visible.push(&bytes).into(),
            None => bytes,
        };
        self.queue(bytes);
    }

    fn queue(&mut self, bytes: Bytes) {
        let chunk = self.with_notice(bytes.clone());
        let space = Arc::clone(&self.space).try_acquire_many_owned(size(&chunk));
        if space.is_ok_and(|space| self.chunks.try_send((chunk, space)).is_ok()) {
            self.open = bytes.last().is_some_and(|last| *last != b'\n');
            self.dropped = 0;
        } else {
            self.dropped += bytes.len() as u64;
        }
    }

    /// Queues a line of our own.
    pub(super) fn note(&mut self, message: &str) {
        self.queue(line(message));
    }

    /// Queues a last line, for which it waits, and waits until everything is written or the timeout
    /// expires.
    pub(super) async fn finish(self, last: Option<&str>, within: Duration) {
        let last = self.with_notice(last.map_or_else(Bytes::new, line));
        let StderrWriter {
            chunks,
            space,
            mut writer_task,
            ..
        } = self;
        let outcome = async {
            if !last.is_empty()
                && let Ok(space) = space.acquire_many_owned(size(&last)).await
            {
                // A failed writer is ignored.
                let _ = chunks.send((last, space)).await;
            }
            drop(chunks);
            let _ = (&mut writer_task).await;
        };
        if timeout(within, outcome).await.is_err() {
            writer_task.abort();
        }
    }

    /// The bytes, preceded by a line about dropped output.
    fn with_notice(&self, bytes: Bytes) -> Bytes {
        if self.dropped == 0 {
            return bytes;
        }
        let end = if self.open { "\n" } else { "" };
        let missing = self.dropped;
        let notice = format!(
            "{end}outpost: {missing} bytes of stderr were dropped because they were not read\n"
        );
        [notice.as_bytes(), &bytes].concat().into()
    }
}

fn line(message: &str) -> Bytes {
    format!("{}\n", note_line(message)).into()
}

/// Queue space of a chunk. One that exceeds the whole queue may be queued alone.
fn size(chunk: &[u8]) -> u32 {
    u32::try_from(chunk.len())
        .unwrap_or(MAX_QUEUED_BYTES)
        .min(MAX_QUEUED_BYTES)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn all_output_is_written_while_read() {
        let (ours, mut theirs) = duplex(16);
        let mut stderr_writer = StderrWriter::to(ours);
        let reading = tokio::spawn(async move {
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.map(|_| read)
        });
        stderr_writer.write("a longer line than fits\n".into());
        stderr_writer.note("ours");
        stderr_writer.finish(Some("last"), LONG).await;
        let read = reading.await.unwrap().unwrap();
        assert_eq!(
            read,
            "a longer line than fits\noutpost: ours\noutpost: last\n"
        );
    }

    #[tokio::test]
    async fn unread_output_is_dropped_and_reported() {
        let (ours, mut theirs) = duplex(16);
        let mut stderr_writer = StderrWriter::to(ours);
        let line = Bytes::from(vec![b'x'; MAX_QUEUED_BYTES as usize / 2]);
        for _ in 0..5 {
            stderr_writer.write(line.clone());
        }
        let mut read = vec![0; MAX_QUEUED_BYTES as usize];
        theirs.read_exact(&mut read).await.unwrap();
        let reading = tokio::spawn(async move {
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.map(|_| read)
        });
        // The space is released after the last byte is written, so wait for it.
        let whole = Arc::clone(&stderr_writer.space)
            .acquire_many_owned(MAX_QUEUED_BYTES)
            .await;
        drop(whole);
        stderr_writer.write("on\n".into());
        stderr_writer.finish(None, LONG).await;
        let read = reading.await.unwrap().unwrap();
        let missing = line.len() * 3;
        assert_eq!(
            read,
            format!(
                "\noutpost: {missing} bytes of stderr were dropped because they were not read\non\n"
            )
        );
    }

    #[tokio::test]
    async fn last_line_is_written_after_dropped_output() {
        let (ours, mut theirs) = duplex(16);
        let mut stderr_writer = StderrWriter::to(ours);
        stderr_writer.write(vec![b'x'; MAX_QUEUED_BYTES as usize].into());
        stderr_writer.write("lost".into());
        let reading = tokio::spawn(async move {
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.map(|_| read)
        });
        stderr_writer.finish(Some("last"), LONG).await;
        let read = reading.await.unwrap().unwrap();
        assert_eq!(
            read.trim_start_matches('x'),
            "\noutpost: 4 bytes of stderr were dropped because they were not read\noutpost: last\n"
        );
    }

    #[tokio::test]
    async fn output_is_made_visible_for_a_terminal() {
        let (ours, mut theirs) = duplex(1024);
        let mut stderr_writer = StderrWriter::to(ours).for_terminal(true);
        stderr_writer.write("a\u{1b}[2J\n".into());
        stderr_writer.finish(Some("\u{202e}b"), LONG).await;
        let mut read = String::new();
        theirs.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "a\\u{1b}[2J\noutpost: \\u{202e}b\n");
    }

    #[tokio::test]
    async fn finish_times_out_without_a_reader() {
        let (ours, _theirs) = duplex(16);
        let mut stderr_writer = StderrWriter::to(ours);
        stderr_writer.write(vec![b'x'; 100].into());
        stderr_writer.finish(None, Duration::from_millis(10)).await;
    }
}
