//! Starts one program, from opening its descriptors to `execve`.
#![expect(unsafe_code, reason = "clones a child")]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{Pid, WaitIdOptions};

use crate::command::Stdio;
use crate::descriptors::{self, ParentEnds};
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::exit_source::ExitSource;
use crate::leader::{self, Leader};
use crate::prepared::Prepared;
use crate::queue::Queue;
use crate::slots::Slots;
use crate::spawn_context::SpawnContext;
use crate::spawned_child::SpawnedChild;
use crate::subreaper::{ReaperHandle, StartFailure, StartRequest};
use crate::sys::child_setup::{ChildSetup, Program, SessionMode, Stage};
use crate::sys::clone::{self, CloneOptions, Cloned};
use crate::sys::stack::ChildStack;
use crate::tree::{NewTree, Tree};

/// The state of one spawner thread.
#[derive(Debug)]
pub(crate) struct SpawnWorker {
    context: Arc<SpawnContext>,
    /// Given to every [`SpawnedChild`].
    queue: Arc<Queue>,
    slots: Slots,
    stack: ChildStack,
    /// A tree for the next start, created while the thread is idle.
    spare: Option<NewTree>,
}

/// A child's three streams, and the descriptors passed as 3 and up.
type ChildFds<'a> = ([BorrowedFd<'a>; 3], Vec<BorrowedFd<'a>>);

/// The pid of a running child, its tree, and the source of its exit status.
type Running = (Pid, Tree, ExitSource);

impl SpawnWorker {
    pub(crate) fn new(context: Arc<SpawnContext>, queue: Arc<Queue>) -> io::Result<Self> {
        Ok(Self {
            slots: Slots::new(context.null())?,
            stack: ChildStack::new()?,
            spare: None,
            context,
            queue,
        })
    }

    /// Starts one program. On failure everything that was reserved is released.
    pub(crate) fn launch(&mut self, prepared: &Prepared) -> Result<SpawnedChild, SpawnError> {
        let kind = match prepared.stdio {
            Stdio::Pty { .. } => SpawnErrorKind::Terminal,
            Stdio::Pipes { .. } => SpawnErrorKind::Descriptors,
        };
        let (ours, theirs) = descriptors::open(prepared.stdio)
            .map_err(Cause::from)
            .map_err(failed(prepared, kind))?;
        let context = Arc::clone(&self.context);
        let fds = prepared.child_fds(theirs.streams(context.null()), context.null());
        let (pid, tree, exit_source) = match self.take_tree(prepared)? {
            NewTree::Direct(tree, cgroup) => self.clone_child(prepared, fds, tree, cgroup)?,
            NewTree::ViaSubreaper(reaper) => self.spawn_via_reaper(prepared, fds, reaper)?,
        };
        let terminal = match &ours {
            ParentEnds::Pty { master } => Some(Arc::downgrade(master)),
            ParentEnds::Pipes { .. } => None,
        };
        Ok(SpawnedChild {
            leader: Arc::new(Leader::new(pid, tree, terminal)),
            exit_source: Some(exit_source),
            ours: Some(ours),
            queue: Arc::clone(&self.queue),
        })
    }

    /// Clones the child in this process.
    fn clone_child(
        &mut self,
        prepared: &Prepared,
        (streams, passed): ChildFds<'_>,
        tree: Tree,
        cgroup: Option<OwnedFd>,
    ) -> Result<Running, SpawnError> {
        let filled = self
            .slots
            .fill(streams, &passed, self.context.null())
            .map_err(Cause::from)
            .map_err(failed(prepared, SpawnErrorKind::Descriptors))?;
        let setup = ChildSetup::new(
            &program(prepared),
            (filled.streams(), filled.passed()),
            (session_mode(prepared), prepared.wrapper.is_some()),
            self.context.open_files,
            self.context.fd_table.close_mode(),
            self.context.signal_reset,
        );
        let options = CloneOptions {
            legacy_clone: self.context.legacy_clone,
            share_files: self.context.shares_files(),
            clear_handlers: self.context.signal_reset.by_clone,
            cgroup: cgroup.as_ref().map(AsFd::as_fd),
        };
        let (entry, argument) = setup.entry();
        // SAFETY: the entry of a `ChildSetup` is made for this, and the setup outlives the clone.
        let cloned = unsafe { clone::clone(options, &mut self.stack, entry, argument) };
        let Cloned { pid, pidfd } = cloned
            .map_err(Cause::from)
            .map_err(failed(prepared, SpawnErrorKind::Clone))?;
        if let Some((stage, errno)) = setup.failure() {
            // The child has exited already. Reap it, so that the tree is empty.
            leader::wait_pidfd(&pidfd, WaitIdOptions::empty());
            return Err(setup_failed(prepared, stage, errno));
        }
        Ok((pid, tree, ExitSource::Pidfd(pidfd)))
    }

    /// Lets a subreaper start the child.
    fn spawn_via_reaper(
        &self,
        prepared: &Prepared,
        (streams, passed): ChildFds<'_>,
        mut reaper: ReaperHandle,
    ) -> Result<Running, SpawnError> {
        let mode = (session_mode(prepared), prepared.wrapper.is_some());
        let request = StartRequest::new(&program(prepared), mode, self.context.open_files);
        if request.is_too_long() {
            return Err(setup_failed(prepared, Stage::Execute, libc::E2BIG));
        }
        let mut result = reaper.start(&request, streams, &passed, None);
        if let Err(StartFailure::NotDelivered(_)) = result {
            // The spare subreaper was killed in the meantime, or could not be forked then.
            if let NewTree::ViaSubreaper(another) = self.create_tree(prepared)? {
                reaper = another;
            }
            result = reaper.start(&request, streams, &passed, None);
        }
        match result {
            Ok(pid) => {
                let reaper = Arc::new(reaper);
                let tree = Tree::supervised(Arc::clone(&reaper));
                Ok((pid, tree, ExitSource::Subreaper(reaper)))
            }
            Err(StartFailure::Setup(stage, errno)) => Err(setup_failed(prepared, stage, errno)),
            Err(StartFailure::Os(errno) | StartFailure::NotDelivered(Some(errno))) => {
                Err(failed(prepared, SpawnErrorKind::Clone)(Cause::Os(errno)))
            }
            Err(StartFailure::NotDelivered(None) | StartFailure::ReaperDied) => {
                Err(failed(prepared, SpawnErrorKind::Tree)(Cause::ReaperDied))
            }
        }
    }

    /// Creates the tree for the next start. If this fails, the next start reports the error.
    pub(crate) fn prepare_next(&mut self) {
        if self.spare.is_none() {
            self.spare = self.context.trees.create().ok();
        }
    }

    fn take_tree(&mut self, prepared: &Prepared) -> Result<NewTree, SpawnError> {
        match self.spare.take() {
            Some(tree) => Ok(tree),
            None => self.create_tree(prepared),
        }
    }

    fn create_tree(&self, prepared: &Prepared) -> Result<NewTree, SpawnError> {
        let tree = self.context.trees.create().map_err(Cause::from);
        tree.map_err(failed(prepared, SpawnErrorKind::Tree))
    }
}

fn session_mode(prepared: &Prepared) -> SessionMode {
    let wrapper = prepared.wrapper.as_ref();
    match (prepared.stdio, wrapper) {
        (Stdio::Pty { .. }, Some(wrapper)) if wrapper.own.is_some() => SessionMode::PassedTerminal,
        (Stdio::Pty { .. }, _) => SessionMode::Terminal,
        (Stdio::Pipes { .. }, Some(_)) => SessionMode::Session,
        (Stdio::Pipes { .. }, None) => SessionMode::Group,
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

/// Converts a failure in the child.
fn setup_failed(prepared: &Prepared, stage: Stage, errno: i32) -> SpawnError {
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
    use crate::leader::WaitResult;
    use crate::spawn_context::FdTableMode;
    use crate::spawner::SpawnerOptions;
    use crate::tree::TreeChoice;

    /// Lists the open descriptors of a child that is started with these features.
    fn open_in_child(legacy_clone: bool, fd_table: FdTableMode) -> String {
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let mut context = SpawnContext::detect(&options).expect("detect host features");
        context.legacy_clone = legacy_clone;
        context.fd_table = fd_table;
        // Not close-on-exec, like a descriptor that the server inherited.
        let inherited = rustix::io::dup(context.null()).expect("dup");
        let queue = Arc::new(Queue::default());
        let mut launcher = SpawnWorker::new(Arc::new(context), queue).expect("create a launcher");
        let prepared = Prepared::new(Command {
            argv: ["ls", "/proc/self/fd"].map(OsString::from).into(),
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            stdio: Stdio::Pipes { stdin: false },
            wrapper: None,
        });
        let mut spawned = launcher
            .launch(&prepared.expect("the command is valid"))
            .expect("the program starts");
        drop(inherited);

        let Some(ExitSource::Pidfd(pidfd)) = spawned.exit_source.take() else {
            panic!("a direct child has a pidfd");
        };
        let result = leader::wait_pidfd(&pidfd, WaitIdOptions::empty());
        assert!(matches!(result, WaitResult::Exited(Exit::Code(0))));
        let Some(ParentEnds::Pipes { stdout, .. }) = spawned.ours.take() else {
            panic!("stdio is pipes");
        };
        let mut text = String::new();
        let mut stdout = std::fs::File::from(stdout);
        stdout.read_to_string(&mut text).expect("read stdout");
        text
    }

    #[test]
    fn child_has_only_its_streams_with_any_kernel_features() {
        for legacy_clone in [false, true] {
            for fd_table in [
                FdTableMode::Shared,
                FdTableMode::Copied,
                FdTableMode::CopiedNoRange,
            ] {
                let open = open_in_child(legacy_clone, fd_table);
                assert_eq!(open, "0\n1\n2\n3\n", "{legacy_clone} {fd_table:?}");
            }
        }
    }
}
