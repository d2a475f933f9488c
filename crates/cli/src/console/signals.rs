//! Signals that come to us and are meant for a process.

use std::time::Duration;

use outpost_client::{Process, SignalName, Terminate};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::window_size;

/// How long a process has between being asked to end and being made to.
const GRACE: Duration = Duration::from_secs(2);

/// The signals that are passed on.
pub(crate) struct Signals {
    ends: Ends,
    window: Signal,
}

/// Those that would have ended us.
struct Ends {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// From now on they don't end us.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Signals {
            ends: Ends {
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
            },
            window: signal(SignalKind::window_change())?,
        })
    }

    /// Waits for one that would have ended us, and says which.
    pub(crate) async fn ending(&mut self) -> SignalName {
        self.ends.next().await
    }

    /// Passes them on for as long as that works: Ctrl-C as often as it is typed,
    /// since a program may have its own idea of it; who asks us to end, or
    /// leaves, wants the process to end with us, and the second time at once.
    /// Returns when another comes while one can't be passed on.
    pub(super) async fn pass_on(&mut self, process: &Process, tty: bool) {
        let mut asked = false;
        loop {
            let heard = tokio::select! {
                _ = self.window.recv(), if tty => None,
                signal = self.ends.next() => Some(signal),
            };
            let again = asked;
            asked |= matches!(heard, Some(SignalName::Terminate | SignalName::Hangup));
            let passed = async {
                match heard {
                    None => resize(process).await,
                    Some(SignalName::Terminate | SignalName::Hangup) => end(process, again).await,
                    // Older servers know no other than the first.
                    Some(signal) => drop(process.signal(signal).await),
                }
            };
            tokio::select! {
                () = passed => {}
                _ = self.ends.next() => return,
            }
        }
    }
}

impl Ends {
    async fn next(&mut self) -> SignalName {
        tokio::select! {
            _ = self.interrupt.recv() => SignalName::Interrupt,
            _ = self.quit.recv() => SignalName::Quit,
            _ = self.terminate.recv() => SignalName::Terminate,
            _ = self.hangup.recv() => SignalName::Hangup,
        }
    }
}

async fn resize(process: &Process) {
    if let Some((rows, cols)) = window_size() {
        // Older servers can't; the terminal stays as it is.
        let _ = process.resize(rows, cols).await;
    }
}

async fn end(process: &Process, asked: bool) {
    let how = Terminate {
        grace: Some(if asked { Duration::ZERO } else { GRACE }),
        ..Terminate::default()
    };
    // Older servers know no grace.
    if process.terminate_with(how).await.is_err() {
        let _ = process.terminate().await;
    }
}
