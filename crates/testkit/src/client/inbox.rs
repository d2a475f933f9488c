//! What has come over a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use crate::patience::PATIENCE;
use crate::{Event, Story};

/// How many of the last messages a failed test shows.
const SHOWN: usize = 20;

/// How much of each of them.
const SHOWN_CHARS: usize = 300;

/// Filled by the task that reads, looked at by the test.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    seen: Mutex<Seen>,
    news: Notify,
}

/// Everything that has come so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// All messages, in order.
    pub messages: Vec<Arc<Value>>,
    /// Responses and errors, by the JSON of their id.
    pub answers: HashMap<String, Vec<Arc<Value>>>,
    /// Notifications about processes.
    pub stories: HashMap<String, Story>,
    /// Processes whose output is counted and not kept.
    pub counted: HashMap<String, Counted>,
    /// The payloads of pongs.
    pub pongs: Vec<Vec<u8>>,
    /// How the connection ended, once it has.
    pub goodbye: Option<Goodbye>,
}

/// The output of a process that was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many bytes.
    pub bytes: usize,
    /// In how many chunks.
    pub chunks: u64,
}

/// How the other side ended a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// With a close frame, and this code in it.
    Code(u16),
    /// Without a word.
    Silent,
}

impl Inbox {
    pub(super) fn message(&self, text: &[u8]) {
        let message: Value = serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("the server sent no JSON: {error}"));
        let message = Arc::new(message);
        let mut seen = self.seen();
        if let Some((process, event)) = Event::of(&message) {
            if let Event::Output { seq, bytes, .. } = &event
                && let Some(counted) = seen.counted.get_mut(&process)
            {
                counted.bytes += bytes.len();
                counted.chunks += 1;
                assert_eq!(*seq, counted.chunks, "the numbers of {process}");
                drop(seen);
                return self.news.notify_waiters();
            }
            seen.stories.entry(process).or_default().events.push(event);
        }
        if message.get("method").is_none() {
            let id = message["id"].to_string();
            let answers = seen.answers.entry(id).or_default();
            answers.push(Arc::clone(&message));
        }
        seen.messages.push(message);
        drop(seen);
        self.news.notify_waiters();
    }

    pub(super) fn only_count(&self, process: &str) {
        let counted = Counted::default();
        self.seen().counted.insert(process.to_owned(), counted);
    }

    pub(super) fn pong(&self, payload: Vec<u8>) {
        self.seen().pongs.push(payload);
        self.news.notify_waiters();
    }

    pub(super) fn goodbye(&self, goodbye: Goodbye) {
        self.seen().goodbye.get_or_insert(goodbye);
        self.news.notify_waiters();
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen())
    }

    /// Waits until `look` finds something; gives up when the deadline or the connection's end
    /// has come without.
    pub(super) async fn until<T>(&self, what: &str, mut look: impl FnMut(&Seen) -> Option<T>) -> T {
        let search = async {
            loop {
                let mut news = std::pin::pin!(self.news.notified());
                news.as_mut().enable();
                {
                    let seen = self.seen();
                    if let Some(found) = look(&seen) {
                        return found;
                    }
                    if let Some(goodbye) = &seen.goodbye {
                        panic!("the connection ended ({goodbye:?}) before {what} came");
                    }
                }
                news.await;
            }
        };
        match tokio::time::timeout(PATIENCE, search).await {
            Ok(found) => found,
            Err(_) => panic!("waited in vain for {what}"),
        }
    }

    /// For whoever looks into a failure.
    #[expect(clippy::print_stderr, reason = "a failed test says what it knows")]
    pub(super) fn tell_all(&self) {
        let seen = self.seen();
        let from = seen.messages.len().saturating_sub(SHOWN);
        eprintln!("the last messages of {}:", seen.messages.len());
        for message in &seen.messages[from..] {
            let text: String = message.to_string().chars().take(SHOWN_CHARS).collect();
            eprintln!("  {text}");
        }
        eprintln!("  its end: {:?}", seen.goodbye);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
