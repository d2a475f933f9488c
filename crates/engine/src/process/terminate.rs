//! Termination of a process.

use std::{io, sync::atomic::Ordering, time::Duration};

use outpost_process::{Disposition, Signal};
use parking_lot::MutexGuard;

use super::Process;
use crate::{
    clock::{self, until},
    termination::{Step, Termination},
};

/// How often a terminating tree is polled after its leader has exited. The exit of
/// other processes causes no event.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The longest interval, for a tree that does not die.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after SIGKILL. Only the kernel can delay the exit.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

impl Process {
    /// Terminates the process and its leftover processes, with the given grace period or its own. If
    /// the actor is done, the caller must call [`Process::wait_until_dead`].
    pub fn terminate(&self, grace: Option<Duration>) {
        let grace = grace.unwrap_or(self.shared.info.kill_grace);
        let step = self.termination().request(clock::now(), grace);
        self.escalate(step);
        self.shared.termination_changed.notify_one();
        if let Some(network) = &self.shared.network {
            network.terminated.cancel();
        }
    }

    /// Kills the process tree.
    pub fn kill_tree(&self) {
        self.escalate(Step::Kill);
    }

    /// Waits until the tree is gone. Escalates when the grace period is over, and kills again as long
    /// as a process is alive. Returns at once if termination was not requested.
    pub(crate) async fn wait_until_dead(&self) {
        let mut killed_at = None;
        let mut pause = POLL_INTERVAL;
        while !self.termination().is_idle() && self.has_leftovers() {
            let deadline = self.termination().deadline();
            if self.termination().is_killed() {
                let since = *killed_at.get_or_insert_with(clock::now);
                if clock::now() - since > KILL_TIMEOUT {
                    if pause == POLL_INTERVAL {
                        tracing::warn!(process = self.id(), waited = ?KILL_TIMEOUT, "process tree still alive after SIGKILL");
                    }
                    pause = (pause * 2).min(MAX_POLL_INTERVAL);
                }
            }
            tokio::select! {
                () = until(deadline) => {}
                () = tokio::time::sleep(pause) => {}
                () = self.shared.termination_changed.notified() => {}
            }
            let step = self.termination().tick(clock::now());
            self.escalate(step);
        }
    }

    /// Whether a process of the tree is alive.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.shared.control.has_leftovers()
    }

    /// Whether the actor has finished.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.actor_done.load(Ordering::SeqCst)
    }

    pub(crate) fn escalate(&self, step: Step) {
        let control = &self.shared.control;
        let done = match step {
            Step::Nothing => Ok(()),
            Step::Ask => self.ask_to_end(),
            Step::Kill => control.kill_tree(),
        };
        if let Err(error) = done {
            tracing::warn!(process = self.id(), ?step, %error, "cannot terminate process");
        }
    }

    /// Sends SIGTERM to the whole tree, and SIGHUP before it if the child handles SIGHUP or
    /// ignores SIGTERM, as interactive shells do. Other programs would be killed by SIGHUP
    /// before their SIGTERM handler can run. SIGHUP is not sent after the child has exited,
    /// because the dispositions of the remaining processes are unknown. SIGCONT follows,
    /// because a stopped process cannot handle signals.
    fn ask_to_end(&self) -> io::Result<()> {
        let control = &self.shared.control;
        let hangs_up = control.disposition(Signal::Hangup) == Disposition::Caught
            || control.disposition(Signal::Terminate) == Disposition::Ignored;
        // If one fails, for example without a free descriptor, the others may reach some processes.
        let hung_up = match hangs_up {
            true => control.signal_tree(Signal::Hangup),
            false => Ok(()),
        };
        let terminated = control.signal_tree(Signal::Terminate);
        let continued = control.signal_tree(Signal::Continue);
        hung_up.and(terminated).and(continued)
    }

    pub(crate) fn termination(&self) -> MutexGuard<'_, Termination> {
        self.shared.termination.lock()
    }

    /// Waits until the actor has finished, and until the tree is gone if termination was
    /// requested.
    pub(crate) async fn wait_until_gone(&self) {
        let done = || self.is_done().then_some(());
        clock::wait_for(&self.shared.delivered, done).await;
        self.wait_until_dead().await;
    }

    /// Marks the actor as finished.
    pub(crate) fn actor_is_done(&self) {
        self.shared.actor_done.store(true, Ordering::SeqCst);
        self.shared.delivered.notify_waiters();
    }
}
