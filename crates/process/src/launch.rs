//! The permanent threads that start programs, from opening the descriptors to `execve`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::process::Pid;

use crate::child::SpawnedChild;
use crate::child_stdio;
use crate::command::Stdio;
use crate::control::Control;
use crate::descriptor_slots::DescriptorSlots;
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::exit::ExitWaiter;
use crate::oom_score;
use crate::prepared::Prepared;
use crate::spawn_queue::SpawnQueue;
use crate::spawner::SpawnContext;
use crate::start_progress::StartProgress;
use crate::subreaper::{ReaperHandle, StartFailure, StartRequest, SubreaperTree};
use crate::sys::child_setup::{ChildSetup, Stage};
use crate::sys::child_slot::ChildSlot;
use crate::sys::clone::Cloned;
use crate::sys::mask;
use crate::sys::stack::ChildStack;
use crate::tree::{NewTree, Tree};

/// Far more than a start needs, even in an unoptimized build.
const STACK_SIZE: usize = 256 * 1024;

/// How often a start is tried with another subreaper. The first one may have been killed since it was
/// requested, and the next one may be requested from a factory that is being killed.
const START_RETRIES: usize = 2;

/// Starts a thread that serves `queue` until it is closed.
pub(crate) fn start_thread(
    number: usize,
    context: Arc<SpawnContext>,
    queue: Arc<SpawnQueue>,
) -> io::Result<JoinHandle<()>> {
    // If the clone resets all handlers, a SIGCHLD handler cannot run in a child.
    let handlers_are_reset = context.clone_mode.signal_reset.by_clone;
    let mut worker = SpawnWorker::new(context, Arc::clone(&queue))?;
    let work = move || {
        let mut masked = mask::block_all();
        if handlers_are_reset && masked.is_ok() {
            masked = mask::unblock_sigchld();
        }
        if let Err(error) = masked {
            tracing::error!(%error, "cannot block signals in spawner thread");
        }
        while let Some(job) = queue.next(number) {
            if job.reply.is_closed() || !job.progress.begin() {
                continue;
            }
            let launched = worker.launch(&job.prepared, &job.progress);
            job.progress.end();
            // If the receiver is gone, the returned child is dropped, which kills it.
            let _ = job.reply.send(launched);
            worker.prepare_next();
        }
    };
    thread::Builder::new()
        .name("spawner".into())
        .stack_size(STACK_SIZE)
        .spawn(work)
}

/// The state of one spawner thread.
#[derive(Debug)]
struct SpawnWorker {
    context: Arc<SpawnContext>,
    /// Given to every [`SpawnedChild`].
    queue: Arc<SpawnQueue>,
    slots: DescriptorSlots,
    stack: ChildStack,
    /// A tree for the next start, created while the thread is idle.
    spare: Option<NewTree>,
}

/// The pid of a running child, its tree, and the source of its exit status.
type Running = (Pid, Tree, ExitWaiter);

impl SpawnWorker {
    fn new(context: Arc<SpawnContext>, queue: Arc<SpawnQueue>) -> io::Result<Self> {
        Ok(Self {
            slots: DescriptorSlots::new(context.null())?,
            stack: ChildStack::new()?,
            spare: None,
            context,
            queue,
        })
    }

    /// Starts one program. On failure everything that was reserved is released.
    fn launch(
        &mut self,
        prepared: &Prepared,
        progress: &StartProgress,
    ) -> Result<SpawnedChild, SpawnError> {
        let kind = match prepared.stdio {
            Stdio::Pty { .. } => SpawnErrorKind::Terminal,
            Stdio::Pipes { .. } => SpawnErrorKind::Descriptors,
        };
        let opened = child_stdio::open(prepared.stdio);
        let (ours, theirs) = opened.map_err(|error| prepared.failed(kind, error))?;
        let context = Arc::clone(&self.context);
        let fds = prepared.child_fds(theirs.streams(context.null()), context.null());
        let is_limited = prepared.limits.needs_cgroup();
        let started = match self.spare.take_if(|_| !is_limited) {
            Some(spare) => match self.start_in(spare, prepared, progress, &fds) {
                // Another process removed the cgroup after it was created.
                Err(error) if error.is_tree_removed() => None,
                started => Some(started?),
            },
            None => None,
        };
        let (pid, tree, exit_source) = match started {
            Some(started) => started,
            None => self.start_in(self.create_tree(prepared)?, prepared, progress, &fds)?,
        };
        let is_pty = ours.stderr.is_none();
        let terminal = is_pty.then(|| Arc::downgrade(&ours.stdout));
        Ok(SpawnedChild {
            control: Control::new(pid, tree, terminal),
            exit_source: Some(exit_source),
            ours: Some(ours),
            queue: Arc::clone(&self.queue),
        })
    }

    fn start_in(
        &mut self,
        tree: NewTree,
        prepared: &Prepared,
        progress: &StartProgress,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Running, SpawnError> {
        match tree {
            NewTree::Direct(tree, cgroup) => {
                if prepared.is_wrapper() {
                    // A wrapper need not wait for what it wraps, and then its usage is not known.
                    tree.measure();
                }
                let (pid, pidfd) = self.clone_child(prepared, &progress.child, fds, cgroup)?;
                Ok((pid, tree, ExitWaiter::Pidfd(pidfd)))
            }
            NewTree::ViaSubreaper(reaper) => self.spawn_via_reaper(prepared, progress, fds, reaper),
        }
    }

    /// Clones the child in this process.
    fn clone_child(
        &mut self,
        prepared: &Prepared,
        slot: &ChildSlot,
        fds: &[BorrowedFd<'_>],
        cgroup: Option<OwnedFd>,
    ) -> Result<(Pid, OwnedFd), SpawnError> {
        let context = &self.context;
        let filled = self.slots.fill(fds, context.null());
        let filled = filled.map_err(|error| prepared.failed(SpawnErrorKind::Descriptors, error))?;
        let setup = ChildSetup::new(&prepared.program, filled.fds(), context.clone_mode, slot);
        let cloned = setup.start(cgroup.as_ref().map(AsFd::as_fd), &mut self.stack);
        let Cloned { pid, pidfd } =
            cloned.map_err(|(stage, errno)| prepared.child_failed(stage, errno))?;
        if let Some(score) = setup.missing_oom_score() {
            oom_score::raise(pid, score);
        }
        Ok((pid, pidfd))
    }

    /// Lets a subreaper start the child.
    fn spawn_via_reaper(
        &self,
        prepared: &Prepared,
        progress: &StartProgress,
        fds: &[BorrowedFd<'_>],
        reaper: ReaperHandle,
    ) -> Result<Running, SpawnError> {
        let request = StartRequest::new(&prepared.program);
        let request = request.ok_or_else(|| prepared.child_failed(Stage::Execute, libc::E2BIG))?;
        let canceled = || prepared.child_failed(Stage::Clone, libc::ECANCELED);
        let mut reaper = Arc::new(reaper);
        let mut retries = 0..START_RETRIES;
        let result = loop {
            if !progress.via_reaper(&reaper) {
                return Err(canceled());
            }
            let result = reaper.start(&request, fds, None);
            if !matches!(result, Err(StartFailure::NotDelivered(_))) || retries.next().is_none() {
                break result;
            }
            if let NewTree::ViaSubreaper(another) = self.create_tree(prepared)? {
                reaper = Arc::new(another);
            }
        };
        match result {
            Ok(pid) => {
                let tree = Tree::Subreaper(SubreaperTree::new(pid, Arc::clone(&reaper)));
                Ok((pid, tree, ExitWaiter::Subreaper(reaper)))
            }
            Err(StartFailure::Child(stage, errno)) => Err(prepared.child_failed(stage, errno)),
            Err(StartFailure::NotDelivered(Some(errno))) => {
                Err(prepared.child_failed(Stage::Clone, errno))
            }
            Err(StartFailure::NotDelivered(None) | StartFailure::ReaperDied) => {
                // The program may have killed it before the start was reported.
                reaper.kill_orphans();
                Err(prepared.failed(SpawnErrorKind::Tree, Cause::ReaperDied))
            }
        }
    }

    /// Creates the tree for the next start. If this fails, the next start reports the error.
    fn prepare_next(&mut self) {
        if self.spare.is_none() {
            self.spare = self.context.trees.create().ok();
        }
    }

    fn create_tree(&self, prepared: &Prepared) -> Result<NewTree, SpawnError> {
        let trees = &self.context.trees;
        if prepared.limits.needs_cgroup() {
            let tree = trees.create_limited(&prepared.limits);
            return tree.map_err(|error| prepared.failed(SpawnErrorKind::Limits, error));
        }
        let tree = trees.create();
        tree.map_err(|error| prepared.failed(SpawnErrorKind::Tree, error))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use std::ffi::OsString;

    use rustix::process::WaitIdOptions;

    use crate::command::Command;
    use crate::exit::{Exit, wait_pidfd};
    use crate::spawner::SpawnerOptions;
    use crate::start_progress::AbandonOnDrop;
    use crate::sys::clone_mode::CloseMode;
    use crate::tree::TreeChoice;

    fn command(argv: &[&str]) -> Prepared {
        let prepared = Prepared::new(Command {
            argv: argv.iter().map(OsString::from).collect(),
            arg0: None,
            cwd: "/".into(),
            env: Vec::new(),
            stdio: Stdio::Pipes { stdin: false },
            limits: outpost_types::ResourceLimits::default(),
            passed: Vec::new(),
            wrapper: None,
        });
        prepared.expect("the command is valid")
    }

    /// Lists the open descriptors of a child that is started with these features.
    fn open_in_child(legacy_clone: bool, close_mode: CloseMode) -> String {
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let mut context = SpawnContext::detect(&options).expect("detect host features");
        context.clone_mode.legacy_clone = legacy_clone;
        context.clone_mode.close_mode = close_mode;
        // Not close-on-exec, like a descriptor that the server inherited.
        let inherited = rustix::io::dup(context.null()).expect("dup");
        let queue = Arc::new(SpawnQueue::default());
        let mut launcher = SpawnWorker::new(Arc::new(context), queue).expect("create a launcher");
        let mut spawned = launcher
            .launch(&command(&["ls", "/proc/self/fd"]), &StartProgress::new())
            .expect("the program starts");
        drop(inherited);

        let Some(ExitWaiter::Pidfd(pidfd)) = spawned.exit_source.take() else {
            panic!("a direct child has a pidfd");
        };
        let exit = wait_pidfd(&pidfd, WaitIdOptions::empty());
        assert_eq!(exit, Some(Exit::Code(0)));
        let stdout = spawned.ours.take().expect("the streams are open").stdout;
        let mut text = String::new();
        let mut stdout = std::fs::File::from(Arc::into_inner(stdout).expect("not shared"));
        stdout.read_to_string(&mut text).expect("read stdout");
        text
    }

    #[test]
    fn start_abandoned_before_clone_does_not_run_program() {
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let context = SpawnContext::detect(&options).expect("detect host features");
        let queue = Arc::new(SpawnQueue::default());
        let mut launcher = SpawnWorker::new(Arc::new(context), queue).expect("create a launcher");
        let progress = Arc::new(StartProgress::new());
        assert!(progress.begin());
        drop(AbandonOnDrop(Arc::clone(&progress)));
        let launched = launcher.launch(&command(&["true"]), &progress);
        let error = launched.expect_err("the start is canceled");
        assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
    }

    /// The program may have changed its score again when the start is reported.
    #[test]
    fn score_that_the_child_has_set_is_not_written_again() {
        let prepared = command(&["true"]);
        let slot = ChildSlot::new();
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let mode = SpawnContext::detect(&options)
            .expect("detect host features")
            .clone_mode;
        let setup = ChildSetup::new(&prepared.program, Vec::new(), mode, &slot);
        assert!(setup.missing_oom_score().is_some());
        let mut stack = ChildStack::new().expect("a stack");
        let Ok(cloned) = setup.start(None, &mut stack) else {
            panic!("the program starts");
        };
        assert_eq!(setup.missing_oom_score(), None);
        let exit = wait_pidfd(&cloned.pidfd, WaitIdOptions::empty());
        assert_eq!(exit, Some(Exit::Code(0)));
    }

    #[test]
    fn child_has_only_its_streams_with_any_kernel_features() {
        for legacy_clone in [false, true] {
            for close_mode in [CloseMode::Unshare, CloseMode::Range, CloseMode::Each] {
                let open = open_in_child(legacy_clone, close_mode);
                assert_eq!(open, "0\n1\n2\n3\n", "{legacy_clone} {close_mode:?}");
            }
        }
    }
}
