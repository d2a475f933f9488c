//! How a process ends.

use std::{
    io,
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use outpost_process::{Disposition, Signal};

use super::Process;
use crate::{
    actor::until,
    clock,
    ladder::{Ladder, Step},
};

/// How often a tree that was asked to end is looked at, once its leader has
/// gone: nothing tells when the last of it goes.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long something may take to die that was killed; only the kernel can hold
/// it up.
pub(crate) const DIES_WITHIN: Duration = Duration::from_secs(2);

impl Process {
    /// Ends it: at once, or after the given grace, or after its own.
    pub fn end(&self, grace: Option<Duration>) {
        let grace = grace.unwrap_or(self.shared.about.kill_grace);
        let step = self.ladder().end(clock::now(), grace);
        self.climb(step);
        self.shared.ladder_moved.notify_one();
    }

    /// Kills what the child has left running.
    pub fn kill_tree(&self) {
        self.climb(Step::Kill);
    }

    /// Ends what the child has left running, with the same graces. Who calls sees
    /// it through if the actor is done.
    pub(crate) fn end_leftovers(&self, grace: Option<Duration>) {
        match grace.unwrap_or(self.shared.about.kill_grace) {
            Duration::ZERO => self.kill_tree(),
            grace => self.end(Some(grace)),
        }
    }

    /// A process that was asked to end may have left others that take their
    /// time; they have until the grace is over. Returns when nothing is left,
    /// or at once if nobody wants it to end.
    pub(crate) async fn see_the_ladder_through(&self) {
        let mut killed_at = None;
        while !self.ladder().is_idle() && self.has_leftovers() {
            let deadline = self.ladder().deadline();
            if deadline.is_none() {
                let since = *killed_at.get_or_insert_with(clock::now);
                if clock::now() - since > DIES_WITHIN {
                    tracing::warn!(process = self.id(), "what was killed is still there");
                    return;
                }
            }
            tokio::select! {
                () = until(deadline) => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.shared.ladder_moved.notified() => {}
            }
            let step = self.ladder().tick(clock::now());
            self.climb(step);
        }
    }

    /// Whether something of its tree is alive although the child has ended.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.shared.control.has_leftovers()
    }

    /// Whether its actor has nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.actor_done.load(Ordering::SeqCst)
    }

    pub(crate) fn climb(&self, step: Step) {
        let control = &self.shared.control;
        let done = match step {
            Step::Nothing => Ok(()),
            Step::Ask => self.ask_to_end(),
            Step::Kill => control.kill_tree(),
        };
        if let Err(error) = done {
            tracing::warn!(process = self.id(), ?step, %error, "failed to end");
        }
    }

    /// Hangup and terminate, to the whole tree. The hangup is for a program that
    /// has something to do on it, or doesn't listen to terminate, as shells at a
    /// terminal don't. All others it would end before terminate is there: in
    /// another way than they were asked to, and without the farewell that they, or
    /// others in the tree, have for terminate. Once the child has gone nobody knows
    /// whom it would hit. A stopped process can't act on either before it continues.
    fn ask_to_end(&self) -> io::Result<()> {
        let control = &self.shared.control;
        let hangs_up = control.disposition(Signal::Hangup) == Disposition::Caught
            || control.disposition(Signal::Terminate) == Disposition::Ignored;
        if hangs_up {
            control.signal_tree(Signal::Hangup)?;
        }
        control.signal_tree(Signal::Terminate)?;
        control.signal_tree(Signal::Continue)
    }

    pub(crate) fn ladder(&self) -> MutexGuard<'_, Ladder> {
        self.shared
            .ladder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until its actor has nothing left to do, and nothing is left that
    /// was asked to end.
    pub(crate) async fn gone(&self) {
        loop {
            let ended = self.shared.delivered.notified();
            if self.is_done() {
                return self.see_the_ladder_through().await;
            }
            ended.await;
        }
    }

    /// The actor has nothing left to do.
    pub(crate) fn actor_is_done(&self) {
        self.shared.actor_done.store(true, Ordering::SeqCst);
        self.shared.delivered.notify_waiters();
    }
}
