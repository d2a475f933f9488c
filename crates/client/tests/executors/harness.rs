//! The executors that every test runs on.

use std::{future::Future, io::Write as _, pin::Pin, sync::Arc, time::Duration};

use outpost_client::{
    DeliveryMode, DialError, Dialer, Event, Events, Executor, LocalExecutor, LocalOptions, Process,
    RemoteExecutor, RemoteOptions, Start, Stream, Transport,
};
use outpost_server::{Host, Peer, Server, Settings};
use tokio::io::{duplex, split};

/// Timeout of everything that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a test on each kind of executor in turn.
pub(crate) async fn on_every_executor<F, Fut>(case: F)
where
    F: Fn(Arc<dyn Executor>) -> Fut,
    Fut: Future<Output = ()>,
{
    for (name, executor) in [
        ("local", local()),
        (
            "remote, acked",
            remote(DeliveryMode::AckedIfSupported).await,
        ),
        ("remote, pushed", remote(DeliveryMode::Push).await),
        ("remote, lines", remote_lines().await),
    ] {
        let _told = NameOnPanic(name);
        soon("the case", case(Arc::clone(&executor))).await;
        soon("the executor to close", executor.close())
            .await
            .unwrap();
    }
}

/// Prints the kind of executor when a test fails.
struct NameOnPanic(&'static str);

impl Drop for NameOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "executor: {}", self.0);
        }
    }
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(value) => value,
        Err(_) => panic!("timeout: {what}"),
    }
}

pub(crate) fn local() -> Arc<dyn Executor> {
    Arc::new(LocalExecutor::new(LocalOptions::default()).unwrap())
}

async fn remote(delivery: DeliveryMode) -> Arc<dyn Executor> {
    let options = RemoteOptions::default().delivery(delivery);
    let dialer = Arc::new(InMemory::new(Wire::WebSocket));
    Arc::new(RemoteExecutor::with_dialer(dialer, options).await.unwrap())
}

async fn remote_lines() -> Arc<dyn Executor> {
    let dialer = Arc::new(InMemory::new(Wire::Lines));
    let executor = RemoteExecutor::with_dialer(dialer, RemoteOptions::default()).await;
    Arc::new(executor.unwrap())
}

#[derive(Clone, Copy)]
enum Wire {
    WebSocket,
    Lines,
}

/// Dials a server in this program. The server ends with the dialer.
pub(crate) struct InMemory {
    server: Server,
    wire: Wire,
    who: Peer,
}

impl InMemory {
    fn new(wire: Wire) -> Self {
        use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
        let spawner = Spawner::new(SpawnerOptions::default()).unwrap();
        let host = Host::detect(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        let server = Server::new(engine, host, Settings::default());
        InMemory {
            server,
            wire,
            who: Peer::Unverified,
        }
    }

    /// The client is the owner of the server.
    pub(crate) fn as_owner() -> Self {
        let mut dialer = InMemory::new(Wire::WebSocket);
        dialer.who = Peer::Owner;
        dialer
    }

    /// The client is not verified.
    pub(crate) fn as_stranger() -> Self {
        InMemory::new(Wire::WebSocket)
    }
}

impl Dialer for InMemory {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        let (ours, theirs) = duplex(64 * 1024);
        let (read, write) = split(theirs);
        let server = self.server.clone();
        let (wire, who) = (self.wire, self.who);
        tokio::spawn(async move {
            let (read, write) = (Box::new(read), Box::new(write));
            match wire {
                Wire::WebSocket => server.serve_websocket(read, write, who).await,
                Wire::Lines => {
                    server.serve_lines(read, write).await;
                }
            }
        });
        let (read, write) = split(ours);
        let (read, write) = (Box::new(read), Box::new(write));
        let transport = match wire {
            Wire::WebSocket => Transport::websocket(read, write),
            Wire::Lines => Transport::lines(read, write),
        };
        Box::pin(async { Ok(transport) })
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.server.kill_all();
    }
}

/// A shell script with the usual `PATH`.
pub(crate) fn sh(script: &str) -> Start {
    Start::shell(script)
        .cwd("/tmp")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// All events of a process.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: Option<i32>,
    pub(crate) closed: bool,
    pub(crate) failed: Option<String>,
}

impl EventLog {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

pub(crate) async fn read_all(process: &Process) -> EventLog {
    let mut events = process.events();
    let log = read_after(&mut events, 0).await;
    assert!(log.closed || log.failed.is_some(), "{log:?}");
    log
}

/// Reads to the end and checks that the numbers are contiguous from `after`.
pub(crate) async fn read_after(events: &mut Events, after: u64) -> EventLog {
    let mut log = EventLog::default();
    let mut last = after;
    while let Some(event) = soon("the next event", events.next()).await {
        assert!(!log.closed, "nothing follows the close");
        let number = match event {
            Event::Output { seq, stream, bytes } => {
                match stream {
                    Stream::Stderr => log.stderr.extend_from_slice(&bytes),
                    Stream::Stdout | Stream::Pty => log.stdout.extend_from_slice(&bytes),
                }
                seq
            }
            Event::Exited { seq, code, .. } => {
                log.exit = Some(code);
                seq
            }
            Event::Closed { seq } => {
                log.closed = true;
                seq
            }
            Event::Failed { error } => {
                log.failed = Some(error.to_string());
                last + 1
            }
        };
        assert_eq!(number, last + 1, "numbers are contiguous");
        last = number;
    }
    log
}
