//! The subreaper factory: forks a subreaper for each request of the server.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, Pid, Signal};

use super::descendants::ChildLookupMethod;
use super::message::{self, Report};
use super::socket;
use super::tree_killer::TreeKiller;
use crate::exit::Exit;
use crate::oom_score;
use crate::sys::child_setup::Stage;
use crate::sys::clone;
use crate::sys::clone_mode::{CloneMode, CloseMode};
use crate::sys::fork::{self, Fork};
use crate::sys::mask;
use crate::sys::signal_reset::SignalReset;
use crate::sys::wait_children::{self, ChildEvent, ChildSignals};

/// Features that differ between hosts, detected once by the factory.
#[derive(Copy, Clone, Debug)]
pub(super) struct HostFeatures {
    pub(super) lookup: ChildLookupMethod,
    /// A subreaper has few descriptors, so its children copy the whole table.
    pub(super) clone_mode: CloneMode,
}

/// The factory's state. It starts no programs and holds none of their descriptors, so little can make
/// it fail.
pub(super) struct ReaperFactory {
    features: HostFeatures,
    own: Pid,
    /// Each message carries one descriptor: a subreaper's end of its socket. `None` once the server
    /// is gone.
    server: Option<OwnedFd>,
    signals: ChildSignals,
    reapers: HashSet<Pid>,
    /// Set while descendants of a killed subreaper may be left.
    killer: Option<TreeKiller>,
}

impl ReaperFactory {
    pub(super) fn new(server: OwnedFd) -> io::Result<Self> {
        // Ignores Ctrl-C and the like, and makes SIGCHLD available through a signalfd.
        mask::block_all()?;
        // Before the files in `/proc` belong to root. Subreapers and their programs inherit it.
        oom_score::raise_own();
        // Programs run as the same user. They must not trace a subreaper, nor copy its socket and report in
        // its name. A program is dumpable again once it is executed.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own))?;
        // Differs from the server's name: `pkill outpost` is meant for the server, and the factory
        // must survive to clean up what the server has started.
        let _ = rustix::thread::set_name(c"reaper-factory");
        Ok(Self {
            features: HostFeatures {
                lookup: ChildLookupMethod::detect()?,
                clone_mode: CloneMode {
                    legacy_clone: !clone::has_clone3(),
                    close_mode: CloseMode::of_copied_table(),
                    signal_reset: SignalReset::EACH,
                    raise_oom_score: false,
                },
            },
            own,
            server: Some(server),
            signals: ChildSignals::open()?,
            reapers: HashSet::new(),
            killer: None,
        })
    }

    /// Runs until the server and all subreapers are gone. Also returns in each forked subreaper, with
    /// its socket.
    pub(super) fn run(mut self) -> Option<(OwnedFd, HostFeatures)> {
        loop {
            self.reap_children();
            if let Some(killer) = &mut self.killer {
                killer.run_if_due(self.features.lookup, self.own, &self.reapers);
            }
            if self.server.is_none() && self.reapers.is_empty() && self.killer.is_none() {
                return None;
            }
            let timeout = self.killer.as_ref().map(TreeKiller::time_until_due);
            if socket::wait_for_event(self.server.as_ref(), &self.signals, timeout)
                && let Some(socket) = self.handle_request()
            {
                return Some((socket, self.features));
            }
        }
    }

    fn reap_children(&mut self) {
        self.signals.clear();
        loop {
            match wait_children::peek(true) {
                ChildEvent::Exited(pid, status) => {
                    wait_children::reap(pid);
                    // A subreaper exits with zero only after its whole tree is gone. After any other
                    // exit the factory has inherited the rest of the tree.
                    if self.reapers.remove(&pid) && status.exit != Exit::Code(0) {
                        self.killer.get_or_insert_with(TreeKiller::new);
                    }
                }
                ChildEvent::Stopped(pid) => {
                    wait_children::consume_stop(pid);
                    // A process in its tree sent SIGSTOP. It cannot be blocked, only undone.
                    if self.reapers.contains(&pid) {
                        let _ = rustix::process::kill_process(pid, Signal::CONT);
                    }
                }
                ChildEvent::None | ChildEvent::NoChildren => break,
            }
        }
        if self.killer.is_some() {
            let mut children = self.features.lookup.children(self.own).into_iter();
            if children.all(|child| self.reapers.contains(&child)) {
                self.killer = None;
            }
        }
    }

    /// Handles one message. Returns the socket in a new subreaper only.
    fn handle_request(&mut self) -> Option<OwnedFd> {
        let server = self.server.as_ref()?;
        let reaper_socket = match socket::receive(server, &mut [0], RecvFlags::DONTWAIT) {
            Ok((1.., mut descriptors)) => descriptors.pop()?,
            Err(Errno::AGAIN | Errno::CONNRESET) => return None,
            Ok(_) | Err(_) => {
                self.server = None;
                return None;
            }
        };
        match fork::fork() {
            Ok(Fork::Child) => return Some(reaper_socket),
            Ok(Fork::Parent(pid)) => {
                self.reapers.insert(pid);
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                let _ = message::send(&reaper_socket, &Report::Failed(Stage::Clone, errno));
            }
        }
        None
    }
}
