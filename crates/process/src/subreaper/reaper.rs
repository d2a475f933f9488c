//! A subreaper: starts one program and supervises its process tree.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal};

use super::factory::HostFeatures;
use super::message::{self, ControlMessage, MalformedRequest, ReceivedRequest, Report};
use super::socket;
use super::tree_killer::{MAX_SCANS, TreeKiller};
use crate::exit::ExitStatus;
use crate::sys::child_setup::{ChildSetup, Stage};
use crate::sys::child_slot::ChildSlot;
use crate::sys::stack::ChildStack;
use crate::sys::wait_children::{self, ChildEvent, ChildSignals};

/// State that lasts from one program to the next.
struct Reaper {
    features: HostFeatures,
    own: Pid,
    /// The server holds the other end. `None` once that is closed.
    server: Option<OwnedFd>,
    signals: ChildSignals,
}

/// The tree of the program that was started.
struct SupervisedTree {
    leader: Pid,
    /// Set once the leader is a zombie and this was reported: whether it left no descendants.
    alone: Option<bool>,
    reaped: bool,
    /// The server no longer needs the leader's pid.
    may_reap: bool,
    /// Set while the tree is being killed.
    killer: Option<TreeKiller>,
}

/// Runs one program after the other, from right after the fork until a program leaves descendants.
/// Then the subreaper exits with the last of them, which tells the server that they are gone.
pub(super) fn run(server: OwnedFd, features: HostFeatures) {
    let (own, signals) = match set_up() {
        Ok(set_up) => set_up,
        Err(error) => {
            let _ = message::send(&server, &failed(&error));
            return;
        }
    };
    // The first message, so that the server can kill this process while a child hangs before `execve`.
    let pid = own.as_raw_nonzero().get();
    let _ = message::send(&server, &Report::Ready { pid });
    let mut reaper = Reaper {
        features,
        own,
        server: Some(server),
        signals,
    };
    while let Some(server) = &reaper.server {
        let report = match message::receive_request(server.as_fd()) {
            Ok(None) => return,
            // Then drops the descriptors: a stream ends only when its last writer is closed.
            Ok(Some(request)) => start(&request, features),
            Err(MalformedRequest) => failed(&Errno::PROTO.into()),
        };
        // If the server is gone the socket is at its end, and then the tree is killed.
        let _ = message::send(server, &report);
        if let Report::Started { pid } = report
            && let Some(leader) = Pid::from_raw(pid)
            && !reaper.supervise(leader)
        {
            if let Some(server) = &reaper.server {
                let _ = message::send(server, &Report::TreeGone);
            }
            return;
        }
    }
}

/// Creates a session of its own, so that no process of the tree can share a group with processes
/// outside it.
fn set_up() -> io::Result<(Pid, ChildSignals)> {
    let own = rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(own))?;
    let _ = rustix::thread::set_name(c"subreaper");
    Ok((own, ChildSignals::open()?))
}

/// Starts the program.
fn start(request: &ReceivedRequest, features: HostFeatures) -> Report {
    let mut stack = match ChildStack::new() {
        Ok(stack) => stack,
        Err(error) => return failed(&error),
    };
    let fds = request.fds.iter().map(OwnedFd::as_raw_fd).collect();
    let slot = ChildSlot::new();
    let setup = ChildSetup::new(&request.program, fds, features.clone_mode, &slot);
    match setup.start(None, &mut stack) {
        Ok(cloned) => Report::Started {
            pid: cloned.pid.as_raw_nonzero().get(),
        },
        Err((stage, errno)) => Report::Failed(stage, errno),
    }
}

fn failed(error: &io::Error) -> Report {
    Report::Failed(Stage::Clone, error.raw_os_error().unwrap_or(libc::EIO))
}

impl Reaper {
    /// Supervises the tree until the leader is reaped and no descendant is left. Returns whether the
    /// leader left none when it exited.
    fn supervise(&mut self, leader: Pid) -> bool {
        let mut tree = SupervisedTree {
            leader,
            alone: None,
            reaped: false,
            may_reap: false,
            killer: None,
        };
        while !self.reap(&mut tree) {
            if let Some(killer) = &mut tree.killer {
                killer.run_if_due(self.features.lookup, self.own, &HashSet::new());
            }
            let timeout = tree.killer.as_ref().map(TreeKiller::time_until_due);
            if socket::wait_for_event(self.server.as_ref(), &self.signals, timeout) {
                self.handle_messages(&mut tree);
            }
        }
        tree.alone == Some(true)
    }

    /// Reaps all children that may be reaped. Returns whether no child is left.
    fn reap(&self, tree: &mut SupervisedTree) -> bool {
        self.signals.clear();
        loop {
            let (pid, status) = match wait_children::peek(false) {
                ChildEvent::NoChildren => return true,
                ChildEvent::None | ChildEvent::Stopped(_) => return false,
                ChildEvent::Exited(pid, status) => (pid, status),
            };
            if pid == tree.leader && !tree.reaped {
                // While the leader stays a zombie, `waitid` returns it again instead of the others.
                let alone = self.reap_all_except(pid);
                if alone {
                    tree.killer = None;
                }
                if tree.alone.is_none() {
                    tree.alone = Some(alone);
                    self.report(status, alone);
                }
                if !tree.may_reap && self.server.is_some() {
                    return false;
                }
                tree.reaped = true;
            }
            wait_children::reap(pid);
        }
    }

    /// Reaps all children except the leader. Returns whether no other child is left.
    fn reap_all_except(&self, leader: Pid) -> bool {
        let children = self.features.lookup.children(self.own).into_iter();
        let mut left = children.filter(|child| *child != leader && !wait_children::reap(*child));
        left.next().is_none()
    }

    fn report(&self, status: ExitStatus, alone: bool) {
        if let Some(server) = &self.server {
            // The socket cannot be full: this is only the second message.
            let _ = message::send(server, &Report::Exited { status, alone });
        }
    }

    fn handle_messages(&mut self, tree: &mut SupervisedTree) {
        while let Some(server) = &self.server {
            match message::receive(server, RecvFlags::empty()) {
                Err(Errno::PIPE) => {
                    self.server = None;
                    tree.killer.get_or_insert_with(TreeKiller::new);
                }
                Ok(message) => {
                    if let Some(message) = message {
                        self.handle(message, tree);
                    }
                    if tree.may_reap && tree.alone == Some(true) {
                        // The next message may be a start request.
                        return;
                    }
                }
                Err(Errno::CONNRESET) => {}
                Err(_) => return,
            }
        }
    }

    fn handle(&self, message: ControlMessage, tree: &mut SupervisedTree) {
        match message {
            ControlMessage::Kill => {
                tree.killer.get_or_insert_with(TreeKiller::new);
            }
            ControlMessage::Reap => tree.may_reap = true,
            ControlMessage::Signal {
                number,
                outside_group_only,
            } => {
                let Some(signal) = Signal::from_named_raw(number) else {
                    return;
                };
                let leader = tree.leader.as_raw_nonzero().get();
                self.signal(signal, outside_group_only.then_some(leader));
            }
        }
    }

    /// Signals each descendant once, except those in one process group. Scans repeatedly, because
    /// processes may exit on the signal during a scan, the leader first, and their children are then
    /// reparented to this process.
    fn signal(&self, signal: Signal, excluded_group: Option<i32>) {
        let own = self.own.as_raw_nonzero().get();
        let mut scanned = HashSet::new();
        let mut signalled = HashSet::new();
        for _ in 0..MAX_SCANS {
            let members = self.features.lookup.descendants(self.own, &scanned);
            if members.is_empty() {
                return;
            }
            for stat in members {
                if stat.parent == own {
                    scanned.insert(stat.pid);
                }
                if Some(stat.group) != excluded_group && signalled.insert((stat.pid, stat.started))
                {
                    stat.signal(signal);
                }
            }
        }
    }
}
