//! The places that every case is run on.

use std::{future::Future, io::Write as _, pin::Pin, sync::Arc, time::Duration};

use outpost_client::{
    DeliveryChoice, DialError, Dialer, Event, Events, Local, LocalOptions, Place, Process, Remote,
    RemoteOptions, Start, StreamName, Transport,
};
use outpost_server::{Host, Peer, Server, Settings};
use tokio::io::{duplex, split};

/// More than anything here takes, unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a case on each kind of place, one after the other.
pub(crate) async fn on_every_place<F, Fut>(case: F)
where
    F: Fn(Arc<dyn Place>) -> Fut,
    Fut: Future<Output = ()>,
{
    for (name, place) in [
        ("local", local()),
        ("remote, acked", remote(DeliveryChoice::Auto).await),
        ("remote, pushed", remote(DeliveryChoice::Push).await),
        ("remote, lines", over_lines().await),
    ] {
        let _told = TellWhere(name);
        soon("the case", case(Arc::clone(&place))).await;
        soon("the end of the place", place.close()).await.unwrap();
    }
}

/// Says on which place a case has failed.
struct TellWhere(&'static str);

impl Drop for TellWhere {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "on a place that is {}", self.0);
        }
    }
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

pub(crate) fn local() -> Arc<dyn Place> {
    Arc::new(Local::new(LocalOptions::default()).unwrap())
}

async fn remote(delivery: DeliveryChoice) -> Arc<dyn Place> {
    let options = RemoteOptions {
        delivery,
        ..RemoteOptions::default()
    };
    let dialer = Arc::new(InMemory::new(Wire::WebSocket));
    Arc::new(Remote::over(dialer, options).await.unwrap())
}

async fn over_lines() -> Arc<dyn Place> {
    let dialer = Arc::new(InMemory::new(Wire::Lines));
    let place = Remote::over(dialer, RemoteOptions::default()).await;
    Arc::new(place.unwrap())
}

#[derive(Clone, Copy)]
enum Wire {
    WebSocket,
    Lines,
}

/// Reaches a server of this program. It ends with its dialer.
pub(crate) struct InMemory {
    server: Server,
    wire: Wire,
    who: Peer,
}

impl InMemory {
    fn new(wire: Wire) -> Self {
        use outpost_engine::{Engine, Limits, Spawner, SpawnerOptions};
        let spawner = Spawner::new(SpawnerOptions::default()).unwrap();
        let host = Host::look(spawner.tree_kind());
        let engine = Engine::new(spawner, Limits::default());
        let server = Server::new(engine, host, Settings::default());
        InMemory {
            server,
            wire,
            who: Peer::Anybody,
        }
    }

    /// Whoever dials is the owner of the server.
    pub(crate) fn of_owner() -> Self {
        let mut dialer = InMemory::new(Wire::WebSocket);
        dialer.who = Peer::Owner;
        dialer
    }

    /// Whoever dials could be anybody.
    pub(crate) fn of_anybody() -> Self {
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

/// A script with the usual programs in its PATH.
pub(crate) fn sh(script: &str) -> Start {
    Start::shell(script)
        .cwd("/tmp")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Everything a process says until its end.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: Option<i32>,
    pub(crate) closed: bool,
    pub(crate) failed: Option<String>,
}

impl Story {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

pub(crate) async fn story(process: &Process) -> Story {
    let mut events = process.events();
    let story = told(&mut events, 0).await;
    assert!(story.closed || story.failed.is_some(), "{story:?}");
    story
}

/// Reads to the end, and checks that the numbers go on from `after` without a
/// hole.
pub(crate) async fn told(events: &mut Events, after: u64) -> Story {
    let mut story = Story::default();
    let mut last = after;
    while let Some(event) = soon("the next event", events.next()).await {
        assert!(!story.closed, "nothing follows the close");
        let number = match event {
            Event::Output { seq, stream, bytes } => {
                match stream {
                    StreamName::Stderr => story.stderr.extend_from_slice(&bytes),
                    StreamName::Stdout | StreamName::Pty => story.stdout.extend_from_slice(&bytes),
                }
                seq
            }
            Event::Exited { seq, code, .. } => {
                story.exit = Some(code);
                seq
            }
            Event::Closed { seq } => {
                story.closed = true;
                seq
            }
            Event::Failed { message } => {
                story.failed = Some(message);
                last + 1
            }
        };
        assert_eq!(number, last + 1, "no number is left out");
        last = number;
    }
    story
}
