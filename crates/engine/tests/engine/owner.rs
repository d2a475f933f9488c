//! A test connection that can attach and detach.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use outpost_engine::{
    Delivery, Engine, Epoch, Event, EventListener, Limits, Link, Peer, Process, ResumeError,
    ResumeOptions, Seq, Session, SessionOptions, Spawner, SpawnerOptions, Start, StartError, Stdio,
    Ttl,
};
use tokio::sync::Notify;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn engine(limits: Limits) -> Engine {
    let spawner = Spawner::new(SpawnerOptions::default()).expect("threads can be started");
    Engine::new(spawner, limits)
}

/// A start request for a shell command on pipes.
pub(crate) fn shell(id: &str, script: &str) -> Start {
    Start {
        id: id.to_owned(),
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        arg0: None,
        cwd: Path::new("/").to_owned(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        stdio: Stdio::Pipes { stdin: true },
        metadata: std::collections::BTreeMap::new(),
        timeout: None,
        drain: None,
        retain_bytes: None,
        sandbox: None,
        floor: None,
        max_processes: None,
        network: None,
        kill_grace: Duration::ZERO,
        limits: outpost_engine::ResourceLimits::default(),
        snapshot: None,
        observer: None,
    }
}

pub(crate) async fn start(
    engine: &Engine,
    session: &Session,
    start: Start,
) -> Result<Process, StartError> {
    let reservation = session.reserve(&start)?;
    let process = engine.start(session, reservation, start).await?;
    session.hand_over(&process);
    Ok(process)
}

/// A connection that ignores all notifications.
struct UnnotifiedLink;

impl Link for UnnotifiedLink {
    fn probe(&self) {}
    fn replaced(&self) {}
    fn adopt(&self, _: &Session, _: Epoch, _: &Process) {}
}

pub(crate) fn open(engine: &Engine, ttl: Duration, delivery: Delivery) -> (Session, Epoch) {
    try_open(engine, Peer::Unverified, ttl, delivery).expect("there is space")
}

pub(crate) fn try_open(
    engine: &Engine,
    peer: Peer,
    ttl: Duration,
    delivery: Delivery,
) -> Option<(Session, Epoch)> {
    let options = SessionOptions {
        peer,
        principal: None,
        ttl: Ttl::For(ttl),
        label: None,
        delivery,
    };
    engine.open_session(options, Arc::new(UnnotifiedLink))
}

pub(crate) fn resume(engine: &Engine, session: &Session) -> Result<Epoch, ResumeError> {
    engine
        .resume_session(
            session.id().reveal(),
            ResumeOptions {
                peer: outpost_engine::Peer::Unverified,
                takeover: false,
                delivery: None,
                ttl: None,
            },
            Arc::new(UnnotifiedLink),
        )
        .map(|(_, epoch)| epoch)
}

/// A cursor that reads events when it is notified.
pub(crate) struct Cursor {
    process: Process,
    news: Arc<Announced>,
    /// The process holds it weakly.
    _watcher: Arc<dyn EventListener>,
    pub(crate) seen: Seq,
}

#[derive(Default)]
struct Announced {
    notify: Notify,
    began: Mutex<Seq>,
}

impl EventListener for Announced {
    fn events_available(&self) {
        self.notify.notify_one();
    }
}

impl Cursor {
    pub(crate) fn attach(
        session: &Session,
        epoch: Epoch,
        process: &Process,
        from: Option<Seq>,
    ) -> Cursor {
        let news = Arc::new(Announced::default());
        let watcher: Arc<dyn EventListener> = Arc::clone(&news) as Arc<dyn EventListener>;
        session.attach(epoch, process, from, &watcher, |start| {
            *news.began.lock().unwrap() = start;
        });
        let seen = *news.began.lock().unwrap();
        Cursor {
            process: process.clone(),
            news,
            _watcher: watcher,
            seen,
        }
    }

    /// The next events, at least one.
    pub(crate) async fn next(&mut self, budget: usize) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            self.process.events_after(self.seen, budget, &mut events);
            if let Some(last) = events.last() {
                self.seen = last.seq();
                return events;
            }
            tokio::time::timeout(TIMEOUT, self.news.notify.notified())
                .await
                .expect("news");
        }
    }
}

/// Polls a condition that causes no notification.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited in vain: {what}"
        );
        // sleep: polls the operating system, which sends no event.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .trim_start()
            .starts_with('Z')
    })
}
