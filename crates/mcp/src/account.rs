//! What is known of a server beside its messages: why it ended, and what it said
//! on the way.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::watch;

/// How much of a line is repeated in an error.
const EXCERPT_CHARS: usize = 300;

/// Why nothing more comes from a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It has ended.
    #[error("the server has ended with exit code {code}{}", last_words(said.as_deref()))]
    Exited {
        /// Its exit code: 128 + N if signal N ended it.
        code: i32,
        /// The last line of its errors.
        said: Option<Arc<str>>,
    },
    /// Nobody can tell any more what becomes of it.
    #[error("{reason}")]
    Lost {
        /// The words of the place.
        reason: Arc<str>,
    },
    /// It is there, and of no use: what it is sent isn't taken.
    #[error("the server takes no more messages")]
    Deaf,
    /// We have closed the connection.
    #[error("the connection was closed")]
    Closed,
}

fn last_words(said: Option<&str>) -> String {
    said.map_or_else(String::new, |line| format!("; it said: {line}"))
}

/// Shared by a transport, which writes it, and the session above, which
/// explains by it what went wrong.
#[derive(Clone, Debug)]
pub struct Account {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fault: watch::Sender<Option<Fault>>,
    said: Mutex<Option<Arc<str>>>,
    skipped: AtomicU64,
    undiscovered: AtomicBool,
    first_skipped: Mutex<Option<Arc<str>>>,
}

impl Account {
    pub(crate) fn new() -> Self {
        Account {
            shared: Arc::new(Shared {
                fault: watch::Sender::new(None),
                said: Mutex::new(None),
                skipped: AtomicU64::new(0),
                undiscovered: AtomicBool::new(false),
                first_skipped: Mutex::new(None),
            }),
        }
    }

    /// Why it has ended, if it has.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.shared.fault.borrow().clone()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> Fault {
        let mut fault = self.shared.fault.subscribe();
        // The sender is ours as well, so it can't be gone.
        let ended = fault.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|fault| fault.clone())
            .unwrap_or(Fault::Closed)
    }

    /// The last line of its errors.
    #[must_use]
    pub fn said(&self) -> Option<Arc<str>> {
        lock(&self.shared.said).clone()
    }

    /// How many lines it wrote that are no messages, and the first of them.
    #[must_use]
    pub fn skipped(&self) -> (u64, Option<Arc<str>>) {
        let count = self.shared.skipped.load(Ordering::Relaxed);
        (count, lock(&self.shared.first_skipped).clone())
    }

    /// Whether it was not waited for when it was asked for its revision.
    pub(crate) fn is_undiscovered(&self) -> bool {
        self.shared.undiscovered.load(Ordering::Relaxed)
    }

    pub(crate) fn give_up_discovery(&self) {
        self.shared.undiscovered.store(true, Ordering::Relaxed);
    }

    /// The first reason is the one that counts.
    pub(crate) fn end(&self, fault: Fault) {
        self.shared.fault.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some(fault);
            }
            first
        });
    }

    pub(crate) fn say(&self, line: &[u8]) {
        *lock(&self.shared.said) = Some(excerpt(line));
    }

    pub(crate) fn skip(&self, line: &[u8]) {
        if self.shared.skipped.fetch_add(1, Ordering::Relaxed) == 0 {
            *lock(&self.shared.first_skipped) = Some(excerpt(line));
        }
    }
}

/// The beginning of a line of somebody else's, in one line of bounded length.
pub(crate) fn excerpt(line: &[u8]) -> Arc<str> {
    // A character has four bytes at most.
    let head = &line[..line.len().min(EXCERPT_CHARS * 4)];
    let text = String::from_utf8_lossy(head);
    let mut words: String = text
        .chars()
        .take(EXCERPT_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if head.len() < line.len() || text.chars().nth(EXCERPT_CHARS).is_some() {
        words.push('…');
    }
    words.into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_is_the_one_that_counts() {
        let account = Account::new();
        assert_eq!(account.fault(), None);
        let said = Some("no such file".into());
        account.end(Fault::Exited { code: 3, said });
        account.end(Fault::Closed);
        let fault = account.ended().await;
        assert_eq!(
            fault.to_string(),
            "the server has ended with exit code 3; it said: no such file"
        );
    }

    #[test]
    fn words_of_others_are_bounded_and_in_one_line() {
        assert_eq!(&*excerpt(b"a\x1b[2J\tb\xff"), "a [2J b\u{fffd}");
        let long = excerpt("é".repeat(1000).as_bytes());
        assert_eq!(long.chars().count(), EXCERPT_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
