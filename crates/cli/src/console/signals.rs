//! Forwards signals to a process.

use std::{convert::Infallible, time::Duration};

use anyhow::Context;
use outpost_client::{ConnectionState, Lease, Process, Signal, Terminate};
use tokio::{
    signal::unix::{Signal as UnixSignal, SignalKind, signal},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{Attachment, Outcome, window_size};
use crate::render::errors;

/// Grace period of a termination.
const GRACE: Duration = Duration::from_secs(2);
/// Delay before the user is told that the process does not end.
const TOLD_AFTER: Duration = Duration::from_millis(500);
/// Timeout for writing the last output of a killed process.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Lease of the session while this program is stopped: the default maximum of a server.
const STOPPED_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout for the server to change the lease.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of signals in flight; more would carry no information.
const MAX_IN_FLIGHT: usize = 16;

/// Signals that are forwarded.
pub(crate) struct Signals {
    end_signals: EndSignals,
    window: UnixSignal,
    received: Received,
}

/// The signals that arrived while a process was attached.
#[derive(Default)]
struct Received {
    /// Whether an interrupt was forwarded.
    interrupted: bool,
    last: Option<Signal>,
}

/// Signals that would end this program.
struct EndSignals {
    interrupt: UnixSignal,
    quit: UnixSignal,
    terminate: UnixSignal,
    hangup: UnixSignal,
}

/// The action on SIGTERM or SIGHUP to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnTermination {
    /// The process is terminated.
    Terminate,
    /// The process is terminated, or interrupted by Ctrl-C. The second signal of any kind kills it.
    TerminateOrKill,
    /// The process continues.
    Detach,
}

impl Signals {
    /// Installs the handlers. From now on, the signals don't end this program.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Self::install().context("cannot listen for signals")
    }

    fn install() -> std::io::Result<Self> {
        Ok(Signals {
            end_signals: EndSignals {
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
            },
            window: signal(SignalKind::window_change())?,
            received: Received::default(),
        })
    }

    /// Waits for a signal that would end this program.
    pub(crate) async fn ending(&mut self) -> Signal {
        self.end_signals.next().await
    }

    /// Waits for `work`, unless a signal arrives that would end this program.
    pub(crate) async fn unless_ended<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Signal> {
        tokio::select! {
            done = work => Ok(done),
            signal = self.ending() => Err(signal),
        }
    }

    /// Returns whether an interrupt was forwarded.
    pub(crate) fn interrupted(&self) -> bool {
        self.received.interrupted
    }

    /// Returns the last signal that arrived while a process was attached, even after its exit.
    pub(crate) fn received(&self) -> Option<Signal> {
        self.received.last
    }

    /// Forwards signals. Returns the outcome if one ends the attachment. `exited` has the exit code
    /// once all earlier output has been written. `stop` is the signal of [`stop_signal`].
    pub(super) async fn forward(
        &mut self,
        to: &Attachment<'_>,
        exited: &watch::Receiver<Option<i32>>,
        stop: Option<UnixSignal>,
    ) -> Outcome {
        tokio::select! {
            outcome = self.end_signals.forward(to, exited, &mut self.received) => outcome,
            never = forward_size(&mut self.window, to) => match never {},
            never = stop_on_request(to, stop) => match never {},
        }
    }
}

impl EndSignals {
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.quit.recv() => Signal::Quit,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Hangup,
        }
    }

    /// Forwards Ctrl-C each time, since programs may handle it in different ways. SIGTERM and
    /// SIGHUP terminate the process, and kill it the second time. While the connection is lost, the
    /// second signal of any kind ends this program.
    ///
    /// With [`OnTermination::TerminateOrKill`], also the second Ctrl-C kills the process, and the user is
    /// told so if the first one has not ended it.
    async fn forward(
        &mut self,
        to: &Attachment<'_>,
        exited: &watch::Receiver<Option<i32>>,
        received: &mut Received,
    ) -> Outcome {
        let is_lost = || {
            to.remote.is_some_and(|remote| {
                *remote.connection_state().borrow() != ConnectionState::Connected
            })
        };
        let mut in_flight = JoinSet::new();
        let mut asked = false;
        let mut told_at = None;
        loop {
            let signal = tokio::select! {
                signal = self.next() => signal,
                Some(_) = in_flight.join_next() => continue,
                () = until(told_at) => {
                    told_at = None;
                    to.notice
                        .print("waiting for the command to end; press Ctrl-C again to kill it");
                    continue;
                }
            };
            received.last = Some(signal);
            let leaves = matches!(signal, Signal::Terminate | Signal::Hangup);
            match to.on_termination {
                OnTermination::Detach if leaves => return Outcome::Detached,
                OnTermination::Detach => {}
                OnTermination::Terminate | OnTermination::TerminateOrKill => {
                    if let Some(code) = *exited.borrow() {
                        return Outcome::ExitedWithLeftovers(code);
                    }
                }
            }
            if !in_flight.is_empty() && is_lost() {
                return Outcome::Abandoned(signal);
            }
            let may_kill = leaves || to.on_termination == OnTermination::TerminateOrKill;
            if may_kill && asked {
                return kill(to.process, signal).await;
            }
            asked |= leaves;
            if to.on_termination == OnTermination::TerminateOrKill {
                asked = true;
                told_at = (!leaves).then(|| Instant::now() + TOLD_AFTER);
            }
            received.interrupted |= signal == Signal::Interrupt;
            if in_flight.len() < MAX_IN_FLIGHT {
                let process = to.process.clone();
                in_flight.spawn(async move {
                    if leaves {
                        terminate(&process, GRACE).await;
                    } else {
                        // Older servers support only the interrupt.
                        let _ = process.signal(signal).await;
                    }
                });
            }
        }
    }
}

/// Waits until a time; for ever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Forwards the terminal size. Sequentially, because the last size has to win.
async fn forward_size(window: &mut UnixSignal, to: &Attachment<'_>) -> Infallible {
    loop {
        if window.recv().await.is_none() || !to.tty {
            std::future::pending::<()>().await;
        }
        if let Some((rows, cols)) = window_size() {
            // Unsupported by older servers; the size stays as it is.
            let _ = to.process.resize(rows, cols).await;
        }
    }
}

/// Handles SIGTSTP from now on, if the session must outlast a stop of this program. Called before any
/// output is printed, so that a Ctrl-Z after it is handled.
///
/// A launched server is stopped by the same Ctrl-Z and needs no handler. SIGSTOP can't be handled. An
/// ignored SIGTSTP stays ignored.
pub(super) fn stop_signal(to: &Attachment<'_>) -> Option<UnixSignal> {
    let is_held = to.remote.is_some() && to.held_while_stopped;
    if !is_held || outpost_engine::is_sigtstp_ignored() {
        return None;
    }
    let stop_signal = rustix::process::Signal::TSTP.as_raw();
    signal(SignalKind::from_raw(stop_signal)).ok()
}

/// Stops this program on Ctrl-Z. Stopped, it doesn't answer the server, which would drop the
/// connection after a minute and end the command with the session's lease. So the server is asked to
/// keep the session for longer; if it can't, this program continues.
async fn stop_on_request(to: &Attachment<'_>, stop: Option<UnixSignal>) -> Infallible {
    let (Some(remote), Some(mut stop)) = (to.remote, stop) else {
        return std::future::pending().await;
    };
    while stop.recv().await.is_some() {
        match timeout(LEASE_TIMEOUT, remote.set_lease(Lease::For(STOPPED_LEASE))).await {
            Ok(Ok(before)) => {
                let hours = STOPPED_LEASE.as_secs() / 3600;
                to.notice.print(&format!(
                    "stopped; the server keeps the command for {hours} h"
                ));
                // Returns after SIGCONT, or at once if there is no shell to send it.
                let _ = outpost_engine::stop_by_sigtstp();
                match remote.restore_lease(before).await {
                    Ok(()) => to.notice.print("continued"),
                    Err(error) => to.notice.print(&format!(
                        "continued; the server may keep the command for {hours} h without this \
                         program: {}",
                        errors::client_message(&error)
                    )),
                }
            }
            Ok(Err(error)) => to.notice.print(&format!(
                "not stopped, because the server would end the command: {}",
                errors::client_message(&error)
            )),
            Err(_) => to
                .notice
                .print("not stopped, because the server doesn't respond and would end the command"),
        }
    }
    std::future::pending().await
}

/// Kills the process, and waits a moment for its last output. The exit arrives earlier unless the
/// output is blocked.
async fn kill(process: &Process, signal: Signal) -> Outcome {
    let _ = timeout(DRAIN_TIMEOUT, terminate(process, Duration::ZERO)).await;
    sleep(DRAIN_TIMEOUT).await;
    Outcome::Killed(signal)
}

async fn terminate(process: &Process, grace: Duration) {
    let how = Terminate::new().grace(grace);
    // Older servers don't support a grace period.
    if process.terminate_with(how).await.is_err() {
        let _ = process.terminate().await;
    }
}
