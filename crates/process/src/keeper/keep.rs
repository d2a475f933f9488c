//! A keeper: starts one program and looks after everything that comes of it.
#![expect(
    unsafe_code,
    reason = "the clone is here, where everything it needs is at hand"
)]

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, WaitIdOptions};

use super::hunt::{Hunt, SWEEPS};
use super::message::{LENGTH, Order, Report};
use super::request::{self, Received};
use super::ways::Ways;
use super::{pause, socket};
use crate::exit::Exit;
use crate::leader;
use crate::sys::birth::Birth;
use crate::sys::children::{self, ChildSignals, News};
use crate::sys::clone::{self, Cloned, How};
use crate::sys::dispositions::Dispositions;
use crate::sys::stack::ChildStack;

/// What lasts from one program to the next.
struct Keeper {
    ways: Ways,
    own: Pid,
    /// The server holds the other end. None once that is closed.
    server: Option<OwnedFd>,
    signals: ChildSignals,
}

/// What a keeper knows of the program it has started.
struct Ward {
    leader: Pid,
    state: Leader,
    /// The server has no use for the leader's number any more.
    may_reap: bool,
    /// As long as everything is to die.
    hunt: Option<Hunt>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Leader {
    Running,
    /// A zombie, and the server knows; also whether it has left nobody.
    Ended {
        alone: bool,
    },
    Reaped {
        alone: bool,
    },
}

/// The life of one keeper, from right after the fork: one program after the other, until one of them
/// leaves somebody behind. Then it is known by its own end when the last of them has gone.
pub(super) fn keep(server: OwnedFd, ways: Ways) {
    let (own, signals) = match set_up() {
        Ok(set_up) => set_up,
        Err(error) => {
            let _ = socket::send(&server, &refused(&error).encode(), &[]);
            return;
        }
    };
    let mut keeper = Keeper {
        ways,
        own,
        server: Some(server),
        signals,
    };
    while let Some(server) = &keeper.server {
        let answer = match request::receive(server.as_fd()) {
            Ok(None) => return,
            Ok(Some(request)) => start(request, ways),
            Err(request::Unreadable) => refused(&Errno::PROTO.into()),
        };
        // If nobody hears it, the socket is at its end, and then what was started is killed.
        let _ = socket::send(server, &answer.encode(), &[]);
        if let Report::Started { pid } = answer
            && let Some(leader) = Pid::from_raw(pid)
            && !keeper.look_after(leader)
        {
            return;
        }
    }
}

/// In a session of its own, so that nobody in its tree can be in a group with strangers.
fn set_up() -> io::Result<(Pid, ChildSignals)> {
    let own = rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(own))?;
    let _ = rustix::thread::set_name(c"keeper");
    Ok((own, ChildSignals::open()?))
}

/// The descriptors are closed when this returns: a stream ends only when its last writer is closed.
fn start(request: Received, ways: Ways) -> Report {
    let mut stack = match ChildStack::new() {
        Ok(stack) => stack,
        Err(error) => return refused(&error),
    };
    let birth = Birth::new(
        &request.program(),
        (
            request.descriptors.each_ref().map(OwnedFd::as_raw_fd),
            request.passed.iter().map(OwnedFd::as_raw_fd).collect(),
        ),
        (request.standing, request.is_deaf),
        request.open_files,
        ways.closing,
        Dispositions::EACH,
    );
    let how = How {
        old_call: ways.old_call,
        ..How::default()
    };
    let (entry, argument) = birth.entry();
    // SAFETY: the entry of a `Birth` is made for this, and the birth outlives the clone.
    let cloned = unsafe { clone::clone(how, &mut stack, entry, argument) };
    let Cloned { pid, pidfd } = match cloned {
        Ok(cloned) => cloned,
        Err(error) => return refused(&error),
    };
    if let Some((stage, errno)) = birth.failure() {
        // It has exited already; this reaps it.
        leader::ask(&pidfd, WaitIdOptions::empty());
        return Report::GaveUp { stage, errno };
    }
    Report::Started {
        pid: pid.as_raw_nonzero().get(),
    }
}

fn refused(error: &io::Error) -> Report {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    Report::Refused { errno }
}

impl Keeper {
    /// Until the leader is reaped and nobody is left; says whether that was so from the start.
    fn look_after(&mut self, leader: Pid) -> bool {
        let mut ward = Ward {
            leader,
            state: Leader::Running,
            may_reap: false,
            hunt: None,
        };
        while !self.reap(&mut ward) {
            if let Some(hunt) = &mut ward.hunt {
                hunt.round(self.ways.family, self.own, &HashSet::new());
            }
            let timeout = ward.hunt.as_ref().map(Hunt::pause);
            if pause::until_news(self.server.as_ref(), &self.signals, timeout) {
                self.take_orders(&mut ward);
            }
        }
        ward.state == Leader::Reaped { alone: true }
    }

    /// Reaps whoever may be reaped; says whether nobody is left.
    fn reap(&self, ward: &mut Ward) -> bool {
        self.signals.clear();
        loop {
            let (pid, exit) = match children::look(false) {
                News::Childless => return true,
                News::Quiet | News::Stopped(_) => return false,
                News::Ended(pid, exit) => (pid, exit),
            };
            if pid == ward.leader && !matches!(ward.state, Leader::Reaped { .. }) {
                // It hides all others from the look.
                let alone = self.reap_all_but(pid);
                if alone {
                    ward.hunt = None;
                }
                let alone = match ward.state {
                    Leader::Ended { alone } => alone,
                    _ => {
                        self.report(exit, alone);
                        alone
                    }
                };
                ward.state = Leader::Ended { alone };
                if !ward.may_reap && self.server.is_some() {
                    return false;
                }
                ward.state = Leader::Reaped { alone };
            }
            children::reap(pid);
        }
    }

    /// Reaps everybody but the leader; says whether there is nobody else.
    fn reap_all_but(&self, leader: Pid) -> bool {
        let others = self.ways.family.children(self.own).into_iter();
        let mut left = others.filter(|child| *child != leader && !children::reap(*child));
        left.next().is_none()
    }

    fn report(&self, exit: Exit, alone: bool) {
        if let Some(server) = &self.server {
            // Can't be full: it is the second one only.
            let _ = socket::send(server, &Report::Ended { exit, alone }.encode(), &[]);
        }
    }

    fn take_orders(&mut self, ward: &mut Ward) {
        while let Some(server) = &self.server {
            let mut bytes = [0; LENGTH];
            match socket::receive(server, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.server = None;
                    ward.hunt.get_or_insert_with(Hunt::new);
                }
                Ok((length, _)) => {
                    if let Some(order) = Order::decode(&bytes[..length]) {
                        self.obey(order, ward);
                    }
                    if ward.may_reap && ward.state == (Leader::Ended { alone: true }) {
                        // What comes next may be about another program.
                        return;
                    }
                }
                Err(Errno::CONNRESET) => {}
                Err(_) => return,
            }
        }
    }

    fn obey(&self, order: Order, ward: &mut Ward) {
        match order {
            Order::Kill => {
                ward.hunt.get_or_insert_with(Hunt::new);
            }
            Order::Reap => ward.may_reap = true,
            Order::Signal { number, beside } => {
                let Some(signal) = Signal::from_named_raw(number) else {
                    return;
                };
                let spared = beside.then(|| ward.leader.as_raw_nonzero().get());
                self.signal(signal, spared);
            }
        }
    }

    /// Sends a signal to everybody below, but for one group, once. Some may end of it while the
    /// others are still being looked for, the leader first: their children are ours then.
    fn signal(&self, signal: Signal, spared: Option<i32>) {
        let own = self.own.as_raw_nonzero().get();
        let mut looked_below = HashSet::new();
        let mut told = HashSet::new();
        for _ in 0..SWEEPS {
            let members = self.ways.family.below(self.own, &looked_below);
            if members.is_empty() {
                return;
            }
            for entry in members {
                if entry.parent == own {
                    looked_below.insert(entry.pid);
                }
                if Some(entry.group) != spared && told.insert((entry.pid, entry.started)) {
                    entry.signal(signal);
                }
            }
        }
    }
}
