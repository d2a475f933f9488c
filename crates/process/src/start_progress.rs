//! One start, as seen by the task that waits for it and the spawner thread that performs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::subreaper::ReaperHandle;
use crate::sys::child_setup::Stage;
use crate::sys::child_slot::ChildSlot;

/// How far a start has come. A file system that does not answer suspends the child before `execve` and
/// with it the spawner thread, or the subreaper that the thread waits for.
#[derive(Debug)]
pub(crate) struct StartProgress {
    /// The child, if the spawner thread clones it.
    pub(crate) child: ChildSlot,
    state: Mutex<State>,
}

/// The time and the subreaper of a running start.
#[derive(Debug, Default)]
struct State {
    /// Set while a thread performs the start.
    since: Option<Instant>,
    /// The subreaper that starts the child, if one does.
    reaper: Option<Arc<ReaperHandle>>,
}

impl StartProgress {
    pub(crate) fn new() -> Self {
        Self {
            child: ChildSlot::new(),
            state: Mutex::default(),
        }
    }

    /// Declares that a thread performs the start. Returns whether it is still wanted.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        state.since = Some(Instant::now());
        self.is_wanted()
    }

    /// Declares that this subreaper starts the child. Returns whether the start is still wanted.
    pub(crate) fn via_reaper(&self, reaper: &Arc<ReaperHandle>) -> bool {
        let mut state = self.state.lock();
        state.reaper = Some(Arc::clone(reaper));
        self.is_wanted()
    }

    /// Whether a task still waits for the start.
    fn is_wanted(&self) -> bool {
        !self.child.is_abandoned()
    }

    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.since = None;
        state.reaper = None;
    }

    /// How long a thread has been performing the start.
    pub(crate) fn running_for(&self) -> Option<Duration> {
        self.state.lock().since.map(|since| since.elapsed())
    }

    /// The step that the child is in. Unknown if a subreaper starts it.
    pub(crate) fn stage(&self) -> Option<Stage> {
        self.child.stage()
    }

    /// Gives up the start: kills the child before it has executed the program, which frees the thread
    /// unless the kernel cannot interrupt the child.
    fn abandon(&self) {
        let mut state = self.state.lock();
        self.child.set_abandoned();
        let reaper = state.reaper.take();
        drop(state);
        self.child.kill();
        if let Some(reaper) = reaper {
            reaper.kill();
        }
    }
}

/// Gives up a start when it is dropped. Without effect once the start has ended.
pub(crate) struct AbandonOnDrop(pub(crate) Arc<StartProgress>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
