//! The mother of all keepers: forks one whenever the server asks, and knows which are hers.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal};

use super::hunt::Hunt;
use super::message::Report;
use super::ways::Ways;
use super::{pause, socket};
use crate::exit::Exit;
use crate::sys::children::{self, ChildSignals, News};
use crate::sys::fork::{self, Fork};
use crate::sys::mask;

/// She starts no programs and holds nothing of theirs, so that there is little that could end her.
pub(super) struct Mother {
    ways: Ways,
    own: Pid,
    /// Each message on it is one descriptor, a keeper's end of its socket. None once the server has
    /// gone.
    server: Option<OwnedFd>,
    signals: ChildSignals,
    keepers: HashSet<Pid>,
    /// As long as somebody may be here who was a killed keeper's.
    hunt: Option<Hunt>,
}

/// Who returns from a mother's life: she herself, or one of her children.
pub(super) enum Role {
    Done,
    Keeper(OwnedFd, Ways),
}

impl Mother {
    pub(super) fn new(server: OwnedFd) -> io::Result<Self> {
        // Ignores Ctrl-C and the like, and lets SIGCHLD come by the descriptor.
        mask::block_all()?;
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))?;
        // Not the server's name: who kills all of that name means the server, and what it has
        // started is cleaned up by those who are left.
        let _ = rustix::thread::set_name(c"keeper-mother");
        Ok(Self {
            ways: Ways::find()?,
            own,
            server: Some(server),
            signals: ChildSignals::open()?,
            keepers: HashSet::new(),
            hunt: None,
        })
    }

    /// Until the server and all keepers have gone, or as a new keeper.
    pub(super) fn run(mut self) -> Role {
        loop {
            self.look_after_children();
            if let Some(hunt) = &mut self.hunt {
                hunt.round(self.ways.family, self.own, &self.keepers);
            }
            if self.server.is_none() && self.keepers.is_empty() && self.hunt.is_none() {
                return Role::Done;
            }
            let timeout = self.hunt.as_ref().map(Hunt::pause);
            if pause::until_news(self.server.as_ref(), &self.signals, timeout)
                && let Some(role) = self.serve()
            {
                return role;
            }
        }
    }

    fn look_after_children(&mut self) {
        self.signals.clear();
        loop {
            match children::look(true) {
                News::Ended(pid, exit) => {
                    children::reap(pid);
                    // One that ends well has nobody left; what others had is ours now.
                    if self.keepers.remove(&pid) && exit != Exit::Code(0) {
                        self.hunt.get_or_insert_with(Hunt::new);
                    }
                }
                News::Stopped(pid) => {
                    children::note_stop(pid);
                    // Somebody in its tree did that. It can't be refused, but undone.
                    if self.keepers.contains(&pid) {
                        let _ = rustix::process::kill_process(pid, Signal::CONT);
                    }
                }
                News::Quiet | News::Childless => break,
            }
        }
        if self.hunt.is_some() && !self.has_strangers() {
            self.hunt = None;
        }
    }

    fn has_strangers(&self) -> bool {
        let mut children = self.ways.family.children(self.own).into_iter();
        children.any(|child| !self.keepers.contains(&child))
    }

    /// Takes one message. In a new keeper it returns who that is.
    fn serve(&mut self) -> Option<Role> {
        let server = self.server.as_ref()?;
        let keeper = match socket::receive(server, &mut [0], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.server = None;
                return None;
            }
            Ok((_, mut descriptors)) => descriptors.pop()?,
            Err(Errno::AGAIN | Errno::CONNRESET) => return None,
            Err(_) => {
                self.server = None;
                return None;
            }
        };
        match fork::fork() {
            Ok(Fork::Child) => return Some(Role::Keeper(keeper, self.ways)),
            Ok(Fork::Parent(pid)) => {
                self.keepers.insert(pid);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                let _ = socket::send(&keeper, &Report::Refused { errno }.encode(), &[]);
            }
        }
        None
    }
}
