//! Signals that come to us and are meant for a process.

use std::{convert::Infallible, time::Duration};

use outpost_client::{Process, Remote, SignalName, Standing, Terminate};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Ending, window_size};

/// How long a process has between being asked to end and being made to.
const GRACE: Duration = Duration::from_secs(2);
/// How long the last words of a process that was killed may take to be written
/// here. If they can't be, nobody reads them.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Signals that are being passed on at once; one more would say nothing new.
const UNDER_WAY: usize = 16;

/// The signals that are passed on.
pub(crate) struct Signals {
    ends: Ends,
    window: Signal,
    interrupted: bool,
}

/// Those that would have ended us.
struct Ends {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// What becomes of a process when we are asked to end, or our terminal is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// It ends with us.
    Ends,
    /// It goes on without us.
    Leaves,
}

/// Whom signals are passed on to.
pub(super) struct Addressee<'a> {
    pub(super) process: &'a Process,
    /// The server it is on, if it is on one.
    pub(super) remote: Option<&'a Remote>,
    /// Whether it is on a terminal, which follows the size of ours.
    pub(super) tty: bool,
    pub(super) parting: Parting,
    /// Its exit code, from when all it wrote before has been written here.
    pub(super) exited: watch::Receiver<Option<i32>>,
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
            interrupted: false,
        })
    }

    /// Waits for one that would have ended us, and says which.
    pub(crate) async fn ending(&mut self) -> SignalName {
        self.ends.next().await
    }

    /// Waits for something, unless one comes that would have ended us.
    pub(crate) async fn unless_ended<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, SignalName> {
        tokio::select! {
            done = work => Ok(done),
            signal = self.ending() => Err(signal),
        }
    }

    /// Whether an interrupt was passed on.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Passes them on, and says when that makes an end of the conversation.
    pub(super) async fn pass_on(&mut self, to: Addressee<'_>) -> Ending {
        tokio::select! {
            ending = self.ends.pass_on(&to, &mut self.interrupted) => ending,
            never = follow(&mut self.window, &to) => match never {},
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

    /// Ctrl-C is passed on as often as it is typed, since a program may have its
    /// own idea of it. Who asks us to end, or leaves, may want the process to end
    /// with us, and the second time at once. While the connection is lost, the
    /// second signal of any kind is for us.
    async fn pass_on(&mut self, to: &Addressee<'_>, interrupted: &mut bool) -> Ending {
        let standing = to.remote.map(Remote::standing);
        let is_lost = || {
            let standing = standing.as_ref();
            standing.is_some_and(|standing| *standing.borrow() != Standing::Connected)
        };
        let mut under_way = JoinSet::new();
        let mut asked = false;
        loop {
            let signal = tokio::select! {
                signal = self.next() => signal,
                Some(_) = under_way.join_next() => continue,
            };
            let parts = matches!(signal, SignalName::Terminate | SignalName::Hangup);
            match to.parting {
                Parting::Leaves if parts => return Ending::Detached,
                Parting::Leaves => {}
                Parting::Ends => {
                    if let Some(code) = *to.exited.borrow() {
                        return Ending::Outlived(code);
                    }
                }
            }
            if !under_way.is_empty() && is_lost() {
                return Ending::GivenUp(signal);
            }
            if parts && asked {
                return stop(to.process, signal).await;
            }
            asked |= parts;
            *interrupted |= signal == SignalName::Interrupt;
            if under_way.len() < UNDER_WAY {
                let process = to.process.clone();
                under_way.spawn(async move {
                    match parts {
                        true => end(&process, GRACE).await,
                        // Older servers know no other than the interrupt.
                        false => drop(process.signal(signal).await),
                    }
                });
            }
        }
    }
}

/// Gives a terminal the size of ours, again and again. One size after the other:
/// the last one has to win.
async fn follow(window: &mut Signal, to: &Addressee<'_>) -> Infallible {
    loop {
        if window.recv().await.is_none() || !to.tty {
            std::future::pending::<()>().await;
        }
        if let Some((rows, cols)) = window_size() {
            // Older servers can't; the terminal stays as it is.
            let _ = to.process.resize(rows, cols).await;
        }
    }
}

/// Kills it, and gives what it still says a moment. Who waits for its output to be
/// written hears of its exit before that; where it is stuck, this is the end.
async fn stop(process: &Process, signal: SignalName) -> Ending {
    let _ = timeout(LAST_WORDS, end(process, Duration::ZERO)).await;
    sleep(LAST_WORDS).await;
    Ending::Stopped(signal)
}

async fn end(process: &Process, grace: Duration) {
    let how = Terminate {
        grace: Some(grace),
        ..Terminate::default()
    };
    // Older servers know no grace.
    if process.terminate_with(how).await.is_err() {
        let _ = process.terminate().await;
    }
}
