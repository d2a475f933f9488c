//! The handle on a child that can be shared.

use std::io;
use std::sync::Arc;

use crate::disposition::Disposition;
use crate::leader::Leader;
use crate::signal::os_signal;
use outpost_types::{Signal, TerminalSize};

/// Sends signals, resizes the terminal and kills the process tree of one child. The last clone to be
/// dropped releases the tree.
#[derive(Clone, Debug)]
pub struct Control(Arc<Leader>);

impl Control {
    pub(crate) fn new(leader: Arc<Leader>) -> Self {
        Self(leader)
    }

    /// The child's pid, which is also its process group id. It may be reused once the child is
    /// reaped.
    pub fn pid(&self) -> u32 {
        self.0.pid().as_raw_nonzero().get().cast_unsigned()
    }

    /// Whether the child runs on a terminal.
    pub fn is_pty(&self) -> bool {
        self.0.is_pty()
    }

    /// Sends a signal to the child's process group, and on a terminal to the foreground process group
    /// too if that is a different one. Returns `Ok(false)` without sending if the child was reaped.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        self.0.signal(os_signal(signal))
    }

    /// Declares that the child only wraps the process with this pid, whose signal dispositions then
    /// count. The first call wins.
    pub fn wraps(&self, pid: u32) {
        self.0.wraps(pid);
    }

    /// The disposition of a signal in the child, or in the process it wraps.
    pub fn disposition(&self, signal: Signal) -> Disposition {
        self.0.disposition(signal)
    }

    /// Sends a signal to each process of the tree once: first to the child's process group, then to
    /// descendants outside it, as far as the kind of tree knows them. After the leader's exit it goes
    /// to the leftover processes.
    pub fn signal_tree(&self, signal: Signal) -> io::Result<()> {
        self.0.signal_tree(os_signal(signal))
    }

    /// Kills the whole tree, including descendants that left the process group. After the leader's
    /// exit it kills the leftover processes, as far as the kind of tree knows them.
    pub fn kill_tree(&self) -> io::Result<()> {
        self.0.kill_tree()
    }

    /// Changes the terminal's size; the system tells the foreground group. Without a terminal the
    /// error is [`io::ErrorKind::Unsupported`] and holds a [`NoTerminal`](crate::NoTerminal); when
    /// the terminal is closed already it is [`io::ErrorKind::NotConnected`].
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        self.0.resize(size)
    }

    /// Releases the tree's resources if no process of it is left. Cheap; may be called repeatedly.
    pub fn release_tree(&self) {
        self.0.release_tree();
    }

    /// Whether a process of the tree is alive, including the leader.
    pub fn has_leftovers(&self) -> bool {
        self.0.has_leftovers()
    }
}
