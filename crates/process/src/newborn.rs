//! A child that is running and that nobody has got yet.

use std::io;
use std::sync::Arc;

use tokio::io::Interest;

use crate::child::Child;
use crate::control::Control;
use crate::descriptors::Ours;
use crate::exit::ExitWatch;
use crate::input::Input;
use crate::leader::{Ended, Leader};
use crate::output::{Output, Stream};
use crate::queue::{Orphan, Queue};
use crate::sys::register;
use crate::watch::Watch;

/// On its way from a spawner thread to the task that asked for it. When that task has gone, this
/// is dropped, and the child is killed with everything it has started.
#[derive(Debug)]
pub(crate) struct Newborn {
    pub(crate) leader: Arc<Leader>,
    /// Taken when it is registered.
    pub(crate) watch: Option<Watch>,
    /// Taken when they are registered.
    pub(crate) ours: Option<Ours>,
    pub(crate) queue: Arc<Queue>,
}

impl Newborn {
    /// Registers everything with the runtime of the calling task. Where that fails, the child is
    /// killed: half a child is no use to anybody.
    pub(crate) fn register(mut self) -> io::Result<Child> {
        let (stdin, outputs) = match self.ours.take() {
            Some(ours) => streams(ours)?,
            None => (None, Vec::new()),
        };
        let watch = self.watch.take().ok_or(io::ErrorKind::NotFound)?;
        let watch = match register::watch(watch) {
            Ok(watch) => watch,
            Err((watch, error)) => {
                self.watch = Some(watch);
                return Err(error);
            }
        };
        let leader = Arc::clone(&self.leader);
        Ok(Child {
            control: Control::new(Arc::clone(&leader)),
            stdin,
            outputs,
            exit: ExitWatch::new(leader, watch, Arc::clone(&self.queue)),
        })
    }
}

fn streams(ours: Ours) -> io::Result<(Option<Input>, Vec<Output>)> {
    let closed = |(_, error)| error;
    let readable = |fd| register::descriptor(fd, Interest::READABLE).map_err(closed);
    let writable = |fd| register::descriptor(fd, Interest::WRITABLE).map_err(closed);
    match ours {
        Ours::Pipes {
            stdin,
            stdout,
            stderr,
        } => {
            let outputs = vec![
                Output::pipe(Stream::Stdout, readable(stdout)?),
                Output::pipe(Stream::Stderr, readable(stderr)?),
            ];
            Ok((stdin.map(writable).transpose()?.map(Input::pipe), outputs))
        }
        Ours::Pty { master } => {
            let terminal = register::terminal(master)?;
            let outputs = vec![Output::pty(Arc::clone(&terminal))?];
            Ok((Some(Input::pty(terminal)), outputs))
        }
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        if let Err(error) = self.leader.kill_tree() {
            tracing::warn!(%error, pid = %self.leader.pid(), "killing an abandoned child failed");
        }
        // Most often it takes a moment to die, and this may be a task's thread.
        if let Ended::NotYet = self.leader.reap(&watch) {
            self.queue.adopt(Orphan {
                watch,
                leader: Arc::clone(&self.leader),
            });
        }
    }
}
