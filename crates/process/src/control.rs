//! The handle on a child that may be shared.

use std::io;
use std::sync::Arc;

use crate::command::Size;
use crate::disposition::Disposition;
use crate::leader::Leader;
use crate::signal::Signal;

/// Signals, size and tree of one child. The last clone to go frees the tree's place.
#[derive(Clone, Debug)]
pub struct Control(Arc<Leader>);

impl Control {
    pub(crate) fn new(leader: Arc<Leader>) -> Self {
        Self(leader)
    }

    /// The number the system gave the child, which is also that of its group. It may be somebody
    /// else's once the child is reaped.
    pub fn pid(&self) -> u32 {
        self.0.pid().as_raw_nonzero().get().cast_unsigned()
    }

    /// Whether it runs on a terminal.
    pub fn is_pty(&self) -> bool {
        self.0.is_pty()
    }

    /// Sends a signal to the child's whole group, and on a terminal to the foreground group too
    /// where that is another one. `Ok(false)` means it was reaped before and nothing was sent.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        self.0.signal(signal.os())
    }

    /// The child only stands for another process of its tree, of which this is the number: what that
    /// one would do with a signal is what counts. Once is enough, and the first counts.
    pub fn stands_for(&self, other: u32) {
        self.0.stands_for(other);
    }

    /// What the child itself would do with a signal.
    pub fn disposition(&self, signal: Signal) -> Disposition {
        self.0.disposition(signal)
    }

    /// Sends a signal to everybody in the tree, once each: first to the child's whole group, then to
    /// those who left it, as far as the kind of tree knows them. After the leader's exit it goes to
    /// what it left behind.
    pub fn signal_tree(&self, signal: Signal) -> io::Result<()> {
        self.0.signal_tree(signal.os())
    }

    /// Kills everything of the tree, descendants that left the group included. After the leader's
    /// exit this kills what it left behind, as far as the kind of tree knows it.
    pub fn kill_tree(&self) -> io::Result<()> {
        self.0.kill_tree()
    }

    /// Changes the terminal's size; the system tells the foreground group. Without a terminal the
    /// error is [`io::ErrorKind::Unsupported`] and holds a [`NoTerminal`](crate::NoTerminal); when
    /// the terminal is closed already it is [`io::ErrorKind::NotConnected`].
    pub fn resize(&self, size: Size) -> io::Result<()> {
        self.0.resize(size)
    }

    /// Frees the tree's place if nothing lives there any more. For the owner to call once
    /// everything has ended; cheap, and may be repeated.
    pub fn settle(&self) {
        self.0.settle();
    }

    /// Whether something of the tree is alive; the leader counts as long as it runs.
    pub fn has_leftovers(&self) -> bool {
        self.0.has_leftovers()
    }
}
