//! An Outpost server in this process, as a remote executor.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use outpost_client::{DialError, Dialer, Executor, RemoteExecutor, RemoteOptions, Transport};
use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
use outpost_server::{Host, Peer, Server, Settings};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, ReadBuf, duplex, split},
    task::AbortHandle,
};

/// An Outpost server in this process whose connections can be cut.
pub(crate) struct TestExecutor {
    server: Server,
    connections: Mutex<Vec<AbortHandle>>,
    unreachable: AtomicBool,
    /// The bytes that clients have sent, if they are recorded.
    recording: Option<Mutex<Vec<u8>>>,
}

impl TestExecutor {
    pub(crate) fn new() -> Arc<Self> {
        TestExecutor::build(None)
    }

    /// Returns an executor that records the messages of its clients, sent as lines.
    pub(crate) fn recorded() -> Arc<Self> {
        TestExecutor::build(Some(Mutex::default()))
    }

    /// Counts the occurrences of `text` in the messages of clients.
    pub(crate) fn count_sent(&self, text: &str) -> usize {
        let recording = self.recording.as_ref().expect("recorded");
        String::from_utf8_lossy(&recording.lock())
            .matches(text)
            .count()
    }

    fn build(recording: Option<Mutex<Vec<u8>>>) -> Arc<Self> {
        let spawner = Spawner::new(SpawnerOptions::default()).expect("a spawner");
        let host = Host::detect(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        Arc::new(TestExecutor {
            server: Server::new(engine, host, Settings::default()),
            connections: Mutex::default(),
            unreachable: AtomicBool::new(false),
            recording,
        })
    }

    /// Cuts every connection.
    pub(crate) fn cut(&self) {
        for connection in self.connections.lock().drain(..) {
            connection.abort();
        }
    }

    /// Cuts every connection and accepts no new ones.
    pub(crate) fn disappear(&self) {
        self.unreachable.store(true, Ordering::Relaxed);
        self.cut();
    }

    pub(crate) async fn connect(self: &Arc<Self>) -> Arc<dyn Executor> {
        let mut options = RemoteOptions::default();
        options.limits.reconnect_timeout = Duration::from_millis(500);
        let dialer = Arc::new(MemoryDialer(Arc::clone(self)));
        Arc::new(
            RemoteExecutor::with_dialer(dialer, options)
                .await
                .expect("connect"),
        )
    }
}

impl Drop for TestExecutor {
    fn drop(&mut self) {
        self.server.kill_all();
    }
}

/// A reader that records what it reads.
struct RecordingReader<R> {
    read: R,
    executor: Arc<TestExecutor>,
}

impl<R: AsyncRead + Unpin> AsyncRead for RecordingReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.read).poll_read(cx, buf);
        if let Some(recording) = &self.executor.recording {
            recording.lock().extend_from_slice(&buf.filled()[before..]);
        }
        result
    }
}

struct MemoryDialer(Arc<TestExecutor>);

impl Dialer for MemoryDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            if self.0.unreachable.load(Ordering::Relaxed) {
                return Err(DialError::Connect(
                    std::io::ErrorKind::ConnectionRefused.into(),
                ));
            }
            let (ours, theirs) = duplex(64 * 1024);
            let (read, write) = split(theirs);
            let server = self.0.server.clone();
            let recorder = self.0.recording.is_some().then(|| Arc::clone(&self.0));
            let is_recorded = recorder.is_some();
            let connection = tokio::spawn(async move {
                let write = Box::new(write);
                match recorder {
                    None => {
                        let read = Box::new(read);
                        server.serve_websocket(read, write, Peer::Unverified).await;
                    }
                    Some(executor) => {
                        let read = Box::new(RecordingReader { read, executor });
                        server.serve_lines(read, write).await;
                    }
                }
            });
            self.0.connections.lock().push(connection.abort_handle());
            let (read, write) = split(ours);
            let (read, write) = (Box::new(read), Box::new(write));
            Ok(if is_recorded {
                Transport::lines(read, write)
            } else {
                Transport::websocket(read, write)
            })
        })
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}
