//! Captures the output of a program.

use std::io::Read;

use tokio::sync::watch;

use crate::deadline;

/// How much output a failure message quotes.
const TAIL_BYTES: usize = 8 * 1024;

/// The output of a program so far. The reading thread holds the sender and drops it at the end of
/// the output.
#[derive(Clone, Debug)]
pub(crate) struct Capture(watch::Receiver<Vec<u8>>);

impl Capture {
    /// Reads `pipe` to its end in a thread, so that the program never blocks on a full pipe.
    pub(crate) fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let (printed, capture) = watch::channel(Vec::new());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                printed.send_modify(|bytes| bytes.extend_from_slice(&buffer[..read]));
            }
        });
        Capture(capture)
    }

    /// Returns the output so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }

    /// Returns the last [`TAIL_BYTES`] of the output, for failure messages.
    pub(crate) fn tail(&self) -> String {
        let printed = self.0.borrow();
        let from = printed.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&printed[from..]).into_owned()
    }

    /// Waits until `look` finds something in the output, or the output ends.
    pub(crate) async fn until<T>(&self, look: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut found = None;
        let mut printed = self.0.clone();
        let search = printed.wait_for(|bytes| {
            found = look(&String::from_utf8_lossy(bytes));
            found.is_some()
        });
        let _ = deadline::expect_soon("output of a program", search).await;
        found
    }

    /// Waits for the end of output and returns all of it.
    pub(crate) async fn whole(&self) -> String {
        self.until(|_| None::<()>).await;
        self.text()
    }
}
