//! What a confined process needs on the host for as long as anything of it lives.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::keepsake::{Keepsake, Keepsakes};
use super::placeholder::{Holding, Remains};
use super::standing::Share;
use crate::Level;

/// What a confined process needs on the host for as long as anything of it lives.
#[derive(Debug)]
pub struct Hold {
    /// Before the placeholders, by which it is known.
    keepsake: Option<Arc<Keepsake>>,
    placeholders: Holding,
    /// Behind the placeholders, so that a path is forgotten when nothing is there any more.
    _standing: Share,
    level: Level,
    /// The first process inside, which is the last to go. None while nobody has named it.
    first: Option<OwnedFd>,
}

impl Hold {
    pub(super) fn new(placeholders: Holding, standing: Share, level: Level) -> Self {
        Self {
            keepsake: None,
            placeholders,
            _standing: standing,
            level,
            first: None,
        }
    }

    /// What has to be open for as long as anything lives inside, for somebody else to see to that.
    pub(super) fn keep(&mut self, all: &Keepsakes) -> io::Result<Option<OwnedFd>> {
        self.keepsake = all.of(&self.placeholders.locked())?;
        let copy = self.keepsake.as_ref().map(|keepsake| keepsake.copy());
        copy.transpose()
    }

    /// Hears who was the first inside. The stage names it, being its child: by the time anybody here
    /// could look, the program may have ended, and others that it left may live there.
    pub fn hear_of(&mut self, first: Option<OwnedFd>) {
        self.first = first;
    }

    /// Gives all of it up, when nothing of the process lives.
    #[must_use = "dropping it takes a while"]
    pub fn let_go(self) -> Remains {
        drop(self.keepsake);
        self.placeholders.let_go()
    }

    /// Whether nobody lives in the process's namespaces but the first, who goes then. Where nobody can
    /// tell it may be so.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.first
            .as_ref()
            .is_none_or(|first| children(first).is_none())
    }

    /// What becomes readable when nothing lives in the process's namespaces any more; none where it
    /// has none.
    ///
    /// # Errors
    /// When nobody can look, for want of descriptors perhaps: then something may live there.
    pub fn first(&self) -> io::Result<Option<OwnedFd>> {
        match (self.level, &self.first) {
            (Level::Landlock, _) => Ok(None),
            (Level::Namespaces, Some(first)) => first.try_clone().map(Some),
            (Level::Namespaces, None) => Err(Errno::SRCH.into()),
        }
    }
}

/// The children of a process, if it has any and the kernel tells.
fn children(process: &OwnedFd) -> Option<String> {
    let about = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
    let about = std::fs::read_to_string(about).ok()?;
    let number = about
        .lines()
        .find_map(|line| line.strip_prefix("Pid:"))?
        .trim();
    let children = format!("/proc/{number}/task/{number}/children");
    let children = std::fs::read_to_string(children).ok()?;
    (!children.trim().is_empty()).then_some(children)
}
