//! What a server prints, kept as it comes.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::patience;

/// How much of it goes into the message of a failed test.
const TAIL_BYTES: usize = 8 * 1024;

/// The growing output of a program. Clones see the same.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    printed: Mutex<Printed>,
    /// Told whenever there is more, or no more.
    news: Notify,
}

#[derive(Debug, Default)]
struct Printed {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    /// Reads in a thread of its own until the end, whatever the test is doing, so that the
    /// program never waits for us.
    pub(crate) fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let capture = Capture {
            shared: Arc::clone(&shared),
        };
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                let mut printed = lock(&shared);
                printed.bytes.extend_from_slice(&buffer[..read]);
                printed.ended = read == 0;
                drop(printed);
                shared.news.notify_waiters();
                if read == 0 {
                    return;
                }
            }
        });
        capture
    }

    /// What was printed so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.shared).bytes).into_owned()
    }

    /// The end of it, for a message.
    pub(crate) fn tail(&self) -> String {
        let printed = lock(&self.shared);
        let from = printed.bytes.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&printed.bytes[from..]).into_owned()
    }

    /// Waits until what was printed has what is looked for, or nothing more can come.
    pub(crate) async fn until<T>(&self, look: impl Fn(&str) -> Option<T>) -> Option<T> {
        patience::soon("something to be printed", async {
            loop {
                let mut news = std::pin::pin!(self.shared.news.notified());
                news.as_mut().enable();
                // Both at once, or the last words could slip through in between.
                let (text, ended) = {
                    let printed = lock(&self.shared);
                    let text = String::from_utf8_lossy(&printed.bytes).into_owned();
                    (text, printed.ended)
                };
                match look(&text) {
                    None if !ended => news.await,
                    found => return found,
                }
            }
        })
        .await
    }

    /// Waits until nothing more can come.
    pub(crate) async fn whole(&self) -> String {
        self.until(|_| None::<()>).await;
        self.text()
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Printed> {
    shared
        .printed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
