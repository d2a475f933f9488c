//! A running child, before and after it is handed to its owner.

use std::io;
use std::sync::Arc;

use outpost_types::Stream;
use tokio::io::Interest;

use crate::child_stdio::StdioEnds;
use crate::control::Control;
use crate::exit::{ExitWaiter, ExitWatch};
use crate::input::Input;
use crate::output::Output;
use crate::spawn_queue::{AbandonedChild, SpawnQueue};
use crate::sys::register;
use crate::terminal::PtyReadiness;

/// A running child. Its parts may be dropped in any order; dropping them does not kill it.
#[derive(Debug)]
pub struct Child {
    /// Signals, terminal size and process tree. The only part that can be cloned.
    pub control: Control,
    /// The writing side of stdin, if it is not `/dev/null`.
    pub stdin: Option<Input>,
    /// Stdout and stderr, in this order, or the terminal.
    pub outputs: Vec<Output>,
    /// The exit status.
    pub exit: ExitWatch,
}

/// The result of a start, sent from a spawner thread to the task that requested it. If the task is gone
/// this is dropped, which kills the child and its tree.
#[derive(Debug)]
pub(crate) struct SpawnedChild {
    pub(crate) control: Control,
    /// Taken by [`SpawnedChild::register`].
    pub(crate) exit_source: Option<ExitWaiter>,
    /// Taken by [`SpawnedChild::register`].
    pub(crate) ours: Option<StdioEnds>,
    pub(crate) queue: Arc<SpawnQueue>,
}

impl SpawnedChild {
    /// Registers all descriptors with the runtime of the calling task. Kills the child on failure.
    pub(crate) fn register(mut self) -> io::Result<Child> {
        let (stdin, outputs) = match self.ours.take() {
            Some(ours) => register_streams(ours)?,
            None => (None, Vec::new()),
        };
        let source = self.exit_source.take().ok_or(io::ErrorKind::NotFound)?;
        let source = match register::exit_source(source) {
            Ok(source) => source,
            Err((source, error)) => {
                self.exit_source = Some(source);
                return Err(error);
            }
        };
        Ok(Child {
            control: self.control.clone(),
            stdin,
            outputs,
            exit: ExitWatch::new(self.control.clone(), source, Arc::clone(&self.queue)),
        })
    }
}

fn register_streams(ours: StdioEnds) -> io::Result<(Option<Input>, Vec<Output>)> {
    let Some(stderr) = ours.stderr else {
        let terminal = register::descriptor(ours.stdout, Interest::WRITABLE)?;
        let readiness = PtyReadiness::new(terminal.get_ref())?;
        let output = Output::new(Stream::Pty, Arc::clone(&terminal), Some(readiness));
        return Ok((Some(Input::new(terminal, true)), vec![output]));
    };
    let stdout = register::descriptor(ours.stdout, Interest::READABLE)?;
    let stderr = register::descriptor(stderr, Interest::READABLE)?;
    let writable = |fd| register::descriptor(fd, Interest::WRITABLE);
    let stdin = ours.stdin.map(writable).transpose()?;
    let outputs = vec![
        Output::new(Stream::Stdout, stdout, None),
        Output::new(Stream::Stderr, stderr, None),
    ];
    Ok((stdin.map(|fd| Input::new(fd, false)), outputs))
}

impl Drop for SpawnedChild {
    fn drop(&mut self) {
        let Some(source) = self.exit_source.take() else {
            return;
        };
        if let Err(error) = self.control.kill_tree() {
            tracing::warn!(%error, pid = self.control.pid(), "cannot kill abandoned child");
        }
        // The child usually takes a moment to die, and this thread may run tasks, so do not wait.
        if self.control.reap(&source).is_none() {
            self.queue.reap_later(AbandonedChild {
                source,
                control: self.control.clone(),
            });
        }
    }
}
