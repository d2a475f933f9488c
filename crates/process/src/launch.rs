//! One start, from descriptors to a running program.
#![expect(
    unsafe_code,
    reason = "the clone is here, where everything it needs is at hand"
)]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{Pid, WaitIdOptions};

use crate::command::Stdio;
use crate::descriptors::{self, Ours};
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::keeper::{Refusal, Request, Tether};
use crate::leader::{self, Leader};
use crate::means::Means;
use crate::newborn::Newborn;
use crate::prepared::Prepared;
use crate::queue::Queue;
use crate::slots::Slots;
use crate::sys::birth::{Birth, Program, Stage, Standing};
use crate::sys::clone::{self, Cloned, How};
use crate::sys::stack::ChildStack;
use crate::tree::{Place, Tree};
use crate::watch::Watch;

/// What one spawner thread starts programs with.
#[derive(Debug)]
pub(crate) struct Launcher {
    means: Arc<Means>,
    /// Newborns need it; see there.
    queue: Arc<Queue>,
    slots: Slots,
    stack: ChildStack,
    /// The place for the next tree, made while nobody is waiting for it.
    spare: Option<Place>,
}

/// A child's streams, and what it finds behind them.
type Placed<'a> = ([BorrowedFd<'a>; 3], Vec<BorrowedFd<'a>>);

/// A child that runs, its tree, and what tells of its end.
type Running = (Pid, Tree, Watch);

impl Launcher {
    pub(crate) fn new(means: Arc<Means>, queue: Arc<Queue>) -> io::Result<Self> {
        Ok(Self {
            slots: Slots::new(means.null())?,
            stack: ChildStack::new()?,
            spare: None,
            means,
            queue,
        })
    }

    /// Starts one program. What was reserved is freed on every way out that isn't a child.
    pub(crate) fn launch(&mut self, prepared: &Prepared) -> Result<Newborn, SpawnError> {
        let (ours, theirs) = descriptors::open(prepared.stdio)
            .map_err(Cause::from)
            .map_err(failed(
                prepared,
                match prepared.stdio {
                    Stdio::Pty { .. } => SpawnErrorKind::Terminal,
                    Stdio::Pipes { .. } => SpawnErrorKind::Descriptors,
                },
            ))?;
        let null = Arc::clone(&self.means);
        let placed = prepared.placed(theirs.ends(null.null()), null.null());
        let (pid, tree, watch) = match self.place(prepared)? {
            Place::Here(tree, cgroup) => self.give_birth(prepared, placed, tree, cgroup)?,
            Place::Kept(tether) => self.entrust(prepared, placed, tether)?,
        };
        let terminal = match &ours {
            Ours::Pty { master } => Some(Arc::downgrade(master)),
            Ours::Pipes { .. } => None,
        };
        Ok(Newborn {
            leader: Arc::new(Leader::new(pid, tree, terminal)),
            watch: Some(watch),
            ours: Some(ours),
            queue: Arc::clone(&self.queue),
        })
    }

    /// Clones the child here.
    fn give_birth(
        &mut self,
        prepared: &Prepared,
        (ends, passed): Placed<'_>,
        tree: Tree,
        cgroup: Option<OwnedFd>,
    ) -> Result<Running, SpawnError> {
        let null = self.means.null();
        let filled = self
            .slots
            .fill(ends, &passed, null)
            .map_err(Cause::from)
            .map_err(failed(prepared, SpawnErrorKind::Descriptors))?;
        let birth = Birth::new(
            &program(prepared),
            (filled.numbers(), filled.passed()),
            (standing(prepared), prepared.carrier.is_some()),
            self.means.open_files,
            self.means.closing(),
            self.means.dispositions,
        );
        let how = How {
            old_call: self.means.old_call,
            share_files: self.means.share_files(),
            clear_handlers: self.means.dispositions.cleared,
            cgroup: cgroup.as_ref().map(AsFd::as_fd),
        };
        let (entry, argument) = birth.entry();
        // SAFETY: the entry of a `Birth` is made for this, and the birth outlives the clone.
        let cloned = unsafe { clone::clone(how, &mut self.stack, entry, argument) };
        let Cloned { pid, pidfd } = cloned
            .map_err(Cause::from)
            .map_err(failed(prepared, SpawnErrorKind::Clone))?;
        if let Some((stage, errno)) = birth.failure() {
            // It has exited already; this reaps it, so that the tree's place is free.
            leader::ask(&pidfd, WaitIdOptions::empty());
            return Err(gave_up(prepared, stage, errno));
        }
        Ok((pid, tree, Watch::Pidfd(pidfd)))
    }

    /// Has the child started by a keeper.
    fn entrust(
        &self,
        prepared: &Prepared,
        (ends, passed): Placed<'_>,
        mut tether: Tether,
    ) -> Result<Running, SpawnError> {
        let standing = (standing(prepared), prepared.carrier.is_some());
        let request = Request::new(&program(prepared), standing, self.means.open_files);
        if request.is_too_long() {
            return Err(gave_up(prepared, Stage::Execute, libc::E2BIG));
        }
        let mut answer = tether.start(&request, ends, &passed, None);
        if let Err(Refusal::Unheard(_)) = answer {
            // A spare one that somebody has killed meanwhile, or that could not be had then.
            if let Place::Kept(another) = self.plant(prepared)? {
                tether = another;
            }
            answer = tether.start(&request, ends, &passed, None);
        }
        match answer {
            Ok(pid) => {
                let tether = Arc::new(tether);
                Ok((pid, Tree::kept(Arc::clone(&tether)), Watch::Tether(tether)))
            }
            Err(Refusal::GaveUp(stage, errno)) => Err(gave_up(prepared, stage, errno)),
            Err(Refusal::Os(errno) | Refusal::Unheard(Some(errno))) => {
                Err(failed(prepared, SpawnErrorKind::Clone)(Cause::Os(errno)))
            }
            Err(Refusal::Unheard(None) | Refusal::Gone) => {
                Err(failed(prepared, SpawnErrorKind::Tree)(Cause::KeeperGone))
            }
        }
    }

    /// Makes the next start quicker. If it fails, that start will say why.
    pub(crate) fn rest(&mut self) {
        if self.spare.is_none() {
            self.spare = self.means.nursery.plant().ok();
        }
    }

    fn place(&mut self, prepared: &Prepared) -> Result<Place, SpawnError> {
        match self.spare.take() {
            Some(place) => Ok(place),
            None => self.plant(prepared),
        }
    }

    fn plant(&self, prepared: &Prepared) -> Result<Place, SpawnError> {
        let place = self.means.nursery.plant().map_err(Cause::from);
        place.map_err(failed(prepared, SpawnErrorKind::Tree))
    }
}

fn standing(prepared: &Prepared) -> Standing {
    let carrier = prepared.carrier.as_ref();
    match (prepared.stdio, carrier) {
        (Stdio::Pty { .. }, Some(carrier)) if carrier.own.is_some() => Standing::TerminalBehind,
        (Stdio::Pty { .. }, _) => Standing::Terminal,
        (Stdio::Pipes { .. }, Some(_)) => Standing::Session,
        (Stdio::Pipes { .. }, None) => Standing::Group,
    }
}

fn program(prepared: &Prepared) -> Program<'_> {
    Program {
        candidates: &prepared.candidates,
        argv: &prepared.argv,
        env: &prepared.env,
        cwd: &prepared.cwd,
    }
}

fn failed(prepared: &Prepared, kind: SpawnErrorKind) -> impl Fn(Cause) -> SpawnError {
    move |cause| SpawnError::new(kind, &prepared.program, cause)
}

/// What a child's own failure means to who asked for it.
fn gave_up(prepared: &Prepared, stage: Stage, errno: i32) -> SpawnError {
    let (kind, subject): (_, &OsString) = match stage {
        Stage::Group => (SpawnErrorKind::Clone, &prepared.program),
        Stage::Terminal => (SpawnErrorKind::Terminal, &prepared.program),
        Stage::Descriptors => (SpawnErrorKind::Descriptors, &prepared.program),
        Stage::Limits => (SpawnErrorKind::Limits, &prepared.program),
        Stage::Directory => (SpawnErrorKind::Directory, &prepared.directory),
        Stage::Execute => (SpawnErrorKind::of_execution(errno), &prepared.program),
    };
    SpawnError::new(kind, subject, Cause::Os(errno))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::command::Command;
    use crate::exit::Exit;
    use crate::leader::Ended;
    use crate::means::Tables;
    use crate::spawner::SpawnerOptions;
    use crate::tree::TreeChoice;

    /// What `ls` says is open in a child, started with these means.
    fn open_in_child(old_call: bool, tables: Tables) -> String {
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let mut means = Means::find(&options).expect("something can be started");
        means.old_call = old_call;
        means.tables = tables;
        // Not close-on-exec, as a careless parent leaves it to the server.
        let inherited = rustix::io::dup(means.null()).expect("it is duplicated");
        let queue = Arc::new(Queue::default());
        let mut launcher = Launcher::new(Arc::new(means), queue).expect("all is reserved");
        let prepared = Prepared::new(Command {
            argv: ["ls", "/proc/self/fd"].map(OsString::from).into(),
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            stdio: Stdio::Pipes { stdin: false },
            carrier: None,
        });
        let mut newborn = launcher
            .launch(&prepared.expect("a fine command"))
            .expect("it starts");
        drop(inherited);

        let Some(Watch::Pidfd(pidfd)) = newborn.watch.take() else {
            panic!("a fresh one has it");
        };
        let ended = leader::ask(&pidfd, WaitIdOptions::empty());
        assert!(matches!(ended, Ended::With(Exit::Code(0))));
        let Some(Ours::Pipes { stdout, .. }) = newborn.ours.take() else {
            panic!("pipes were asked for");
        };
        let mut text = String::new();
        let mut stdout = std::fs::File::from(stdout);
        stdout.read_to_string(&mut text).expect("it has ended");
        text
    }

    #[test]
    fn whatever_the_kernel_lacks_the_child_has_three_streams() {
        for old_call in [false, true] {
            for tables in [Tables::Shared, Tables::Copied, Tables::Single] {
                let open = open_in_child(old_call, tables);
                assert_eq!(open, "0\n1\n2\n3\n", "{old_call} {tables:?}");
            }
        }
    }
}
