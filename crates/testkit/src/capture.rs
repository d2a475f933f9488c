//! Captures the output of a program.

use std::io::Read;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::deadline;

/// How much output a failure message quotes.
const TAIL_BYTES: usize = 8 * 1024;

/// The output of a program so far. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    printed: Mutex<Printed>,
    /// Notified at more output and at the end of output.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Printed {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    /// Reads `pipe` to its end in a thread, so that the program never blocks on a full pipe.
    pub(crate) fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let capture = Capture {
            shared: Arc::clone(&shared),
        };
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                let mut printed = shared.printed.lock();
                printed.bytes.extend_from_slice(&buffer[..read]);
                printed.ended = read == 0;
                drop(printed);
                shared.changed.notify_waiters();
                if read == 0 {
                    return;
                }
            }
        });
        capture
    }

    /// Returns the output so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.printed.lock().bytes).into_owned()
    }

    /// Returns the last [`TAIL_BYTES`] of the output, for failure messages.
    pub(crate) fn tail(&self) -> String {
        let printed = self.shared.printed.lock();
        let from = printed.bytes.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&printed.bytes[from..]).into_owned()
    }

    /// Waits until `look` finds something in the output, or the output ends.
    pub(crate) async fn until<T>(&self, look: impl Fn(&str) -> Option<T>) -> Option<T> {
        deadline::expect_soon("output of a program", async {
            loop {
                let mut changed = std::pin::pin!(self.shared.changed.notified());
                changed.as_mut().enable();
                // Text and end under one lock: otherwise the last output could be missed.
                let (text, ended) = {
                    let printed = self.shared.printed.lock();
                    let text = String::from_utf8_lossy(&printed.bytes).into_owned();
                    (text, printed.ended)
                };
                match look(&text) {
                    None if !ended => changed.await,
                    found => return found,
                }
            }
        })
        .await
    }

    /// Waits for the end of output and returns all of it.
    pub(crate) async fn whole(&self) -> String {
        self.until(|_| None::<()>).await;
        self.text()
    }
}
