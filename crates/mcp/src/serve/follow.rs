//! One process, followed so that it never waits for anybody to read.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outpost_client::{Event, Events, StreamName};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{Keep, Stream, Transcript};

/// What is known of a process. One task writes it down, calls read it.
pub(super) struct Follow {
    inside: Mutex<Known>,
    /// Changes whenever something has happened.
    news: watch::Sender<()>,
    started: Instant,
}

/// The same, while nobody else looks.
pub(super) struct Known {
    pub(super) transcript: Transcript,
    pub(super) state: State,
    /// How long it ran.
    pub(super) ran: Option<Duration>,
}

/// How a process stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// It has exited; what it started may still hold its outputs.
    Exited(i32),
    /// Nothing more will be written.
    Closed(i32),
    /// Nobody knows what has become of it, for this reason.
    Lost(String),
}

impl State {
    pub(super) fn is_running(&self) -> bool {
        *self == State::Running
    }

    /// Whether nothing more will be heard.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, State::Closed(_) | State::Lost(_))
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        match self {
            State::Exited(code) | State::Closed(code) => Some(*code),
            State::Running | State::Lost(_) => None,
        }
    }
}

impl Follow {
    pub(super) fn new(keep: Keep) -> Self {
        Follow {
            inside: Mutex::new(Known {
                transcript: Transcript::new(keep),
                state: State::Running,
                ran: None,
            }),
            news: watch::Sender::new(()),
            started: Instant::now(),
        }
    }

    /// Writes down what is heard, to the last event.
    pub(super) async fn listen(&self, mut events: Events) {
        while let Some(event) = events.next().await {
            self.take(event);
        }
        let mut known = self.known();
        if !known.state.is_over() {
            known.state = State::Lost("nothing more was heard of it".to_owned());
        }
        drop(known);
        self.news.send_replace(());
    }

    fn take(&self, event: Event) {
        let mut known = self.known();
        match event {
            Event::Output { stream, bytes, .. } => {
                let stream = match stream {
                    StreamName::Stderr => Stream::Stderr,
                    StreamName::Stdout | StreamName::Pty => Stream::Stdout,
                };
                known.transcript.append(stream, &bytes);
            }
            Event::Exited { code, .. } => {
                known.state = State::Exited(code);
                known.ran = Some(self.started.elapsed());
            }
            Event::Closed { .. } => {
                let code = known.state.exit_code().unwrap_or(-1);
                known.state = State::Closed(code);
            }
            Event::Failed { message } => known.state = State::Lost(message),
        }
        drop(known);
        self.news.send_replace(());
    }

    /// Locked for a few instructions, and never across a wait.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> State {
        self.known().state.clone()
    }

    /// How long it has run, or did.
    pub(super) fn ran(&self) -> Duration {
        self.known().ran.unwrap_or_else(|| self.started.elapsed())
    }

    /// Waits until what is known is so. Cancel-safe.
    pub(super) async fn until(&self, so: impl Fn(&Known) -> bool) {
        let mut news = self.news.subscribe();
        loop {
            if so(&self.known()) {
                return;
            }
            // The sender is ours, so there is always one.
            let _ = news.changed().await;
        }
    }

    /// Waits until it has exited and its streams have ended, or until that takes
    /// longer than it may.
    pub(super) async fn settled(&self, drain: Duration) {
        self.until(|known| !known.state.is_running()).await;
        let closed = self.until(|known| known.state.is_over());
        // Something it has started may hold them for ever.
        let _ = timeout(drain, closed).await;
    }
}
