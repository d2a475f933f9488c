//! The task of a process: reads its output, writes its input, terminates it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outpost_journal::{Exit, OutputEnd, Stream};
use outpost_netproxy::Proxy;
use outpost_process::{ExitWatch, Output, ReadOutcome, ReadableFd};
use outpost_sandbox::{HostResources, RemovedPlaceholders};
use tokio::time::{sleep_until, timeout};

use crate::{
    ProcessObserver,
    clock::{self, until},
    exit_cause::Ending,
    kept_output::ReadAllowance,
    process::{KILL_TIMEOUT, Process},
};

/// The exit code of a process that was killed by its timeout.
const TIMED_OUT: i32 = 124;

/// The maximum size of one read from a child.
const READ_BYTES: usize = 64 * 1024;

/// How long to wait for memory before output is read again. Doubles each time.
const MEMORY_RETRY: Duration = Duration::from_millis(50);

/// The longest wait for memory: thousands of processes may wait at once, for owners that do not read.
const MAX_MEMORY_RETRY: Duration = Duration::from_secs(1);

/// The host resources of a sandboxed process that left processes running. They
/// are released when the last of these has exited.
pub(crate) struct LeftoverWatch {
    resources: HostResources,
    /// The first process in the sandbox, which exits last.
    first: ReadableFd,
}

impl LeftoverWatch {
    pub(crate) async fn wait(self) {
        ended(Some(&self.first)).await;
        self.resources.release().await;
    }
}

/// The task that reads, writes, waits for and terminates one process.
pub(crate) struct Actor {
    pub(crate) process: Process,
    /// The streams that have not ended.
    pub(crate) outputs: Vec<Output>,
    /// The streams that have ended. They stay open while the child may live:
    /// closing the last descriptor of a terminal would hang up a child that has
    /// closed its own end and is about to exit.
    pub(crate) ended: Vec<Output>,
    pub(crate) exit: ExitWatch,
    pub(crate) timeout_at: Option<Instant>,
    /// How long open streams are read after the exit.
    pub(crate) drain: Option<Duration>,
    /// The host resources of a sandboxed process.
    pub(crate) resources: Option<HostResources>,
    /// Set after the exit if sandboxed processes are left.
    pub(crate) leftovers: Option<LeftoverWatch>,
    /// How long to wait for late output of a sandboxed process.
    pub(crate) late_output_timeout: Duration,
    /// The proxy, which serves until the process is closed.
    pub(crate) network: Option<Proxy>,
    /// The limit of its CPU time.
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) observer: Option<Arc<dyn ProcessObserver>>,
}

impl Actor {
    /// Runs until the process is closed and, if its termination was requested,
    /// its tree is gone.
    ///
    /// Does not wait for processes that a sandboxed process left running; returns
    /// their watch instead.
    pub(crate) async fn run(mut self) -> Option<LeftoverWatch> {
        let mut exited = false;
        let mut timed_out = false;
        let mut give_up_at = None;
        let mut end = OutputEnd::Whole;
        let mut cleanup = None;
        let mut memory_retry = MEMORY_RETRY;
        while !exited || !self.outputs.is_empty() {
            // A child that is always ready would otherwise starve other tasks:
            // readiness alone never makes a task yield.
            tokio::task::consume_budget().await;
            let space = self.process.space();
            if space != ReadAllowance::NoMemory {
                memory_retry = MEMORY_RETRY;
            }
            let shared = &self.process.shared;
            let deadline = self.process.termination().deadline();
            let timeout = self.timeout_at.filter(|_| !timed_out && !exited);
            // Checked first, so that a timeout of zero expires before any output.
            if timeout.is_some_and(|at| at <= clock::now()) {
                timed_out = true;
                self.process.terminate(Some(Duration::ZERO));
                continue;
            }
            tokio::select! {
                exit = self.exit.wait(), if !exited => {
                    exited = true;
                    give_up_at = self.drain.map(|drain| clock::after(clock::now(), drain));
                    self.drain();
                    let code = if timed_out { TIMED_OUT } else { exit.code() };
                    let sandboxed = self.resources.is_some();
                    let usage = self.exit.usage();
                    let ending = Ending {
                        exit,
                        timed_out,
                        terminated: !self.process.termination().is_idle(),
                        wrapped: self.process.shared.control.is_wrapper(),
                        cpu_seconds: self.cpu_seconds,
                        usage,
                    };
                    let control = &self.process.shared.control;
                    let ended_by = ending.cause(|| control.is_oom_killed());
                    if sandboxed {
                        cleanup = self.release_resources().await;
                    }
                    let sandbox_denied = sandboxed && self.process.looks_denied(code);
                    let exit = Exit {
                        code,
                        sandbox_denied,
                        ended_by: Some(ended_by),
                        usage,
                    };
                    // First, so that the record precedes what a client does next.
                    if let Some(observer) = &self.observer {
                        observer.exited(&self.process, &exit);
                    }
                    self.process.append(|journal| journal.exited(exit));
                    // Usually the streams end now: then `closed` is delivered with
                    // the exit, in one wakeup.
                    for index in (0..self.outputs.len()).rev() {
                        self.read(index, READ_BYTES);
                    }
                    if !self.outputs.is_empty() {
                        self.exit.reap();
                    }
                }
                (index, bytes) = readable_with(&self.outputs, space), if !self.outputs.is_empty() => {
                    self.read(index, bytes);
                }
                () = shared.space.notified(), if !space.is_some() => {}
                () = tokio::time::sleep(memory_retry), if space == ReadAllowance::NoMemory => {
                    memory_retry = (memory_retry * 2).min(MAX_MEMORY_RETRY);
                }
                () = shared.stdin.work() => shared.stdin.flush(),
                () = shared.termination_changed.notified() => {}
                () = until(deadline) => {
                    let step = self.process.termination().tick(clock::now());
                    self.process.escalate(step);
                }
                () = until(timeout) => {}
                () = until(give_up_at) => {
                    end = OutputEnd::GivenUp;
                    self.outputs.clear();
                }
            }
        }
        self.process.shared.stdin.close();
        // The leftover processes may have exited with their streams.
        if let Some(leftovers) = self.leftovers.take() {
            cleanup = self.release_if_only_init_left(leftovers).await;
        }
        self.process.append(|journal| journal.close(end));
        self.network = None;
        // Only cleanup follows, so waiting tasks get to see `closed` first.
        tokio::task::yield_now().await;
        drop(cleanup);
        self.ended.clear();
        self.exit.reap();
        self.process.wait_until_dead().await;
        self.process.shared.control.release_tree();
        self.process.actor_is_done();
        // Termination may have been requested between the two.
        self.process.wait_until_dead().await;
        self.leftovers
    }

    fn read(&mut self, index: usize, bytes: usize) {
        let output = &mut self.outputs[index];
        match output.read(bytes.min(READ_BYTES)) {
            ReadOutcome::Data(bytes) => {
                let stream = output.stream();
                self.process.append(|journal| journal.output(stream, bytes));
            }
            ReadOutcome::Empty => {}
            ReadOutcome::End => {
                let ended = self.outputs.swap_remove(index);
                if ended.stream() == Stream::Pty {
                    // No process has the terminal open, so none will read from it.
                    self.process.shared.stdin.close();
                }
                self.ended.push(ended);
            }
        }
    }

    /// Releases the host resources after the exit of a sandboxed process, unless it
    /// left processes running. If it left none, the placeholders are gone before the
    /// exit is delivered.
    async fn release_resources(&mut self) -> Option<RemovedPlaceholders> {
        let resources = self.resources.take()?;
        let watched = |first: Option<_>| first.map(ReadableFd::new).transpose();
        match resources.init().and_then(watched) {
            Ok(Some(first)) => {
                if self.drain_late_output(Some(&first)).await {
                    return resources.release().await;
                }
                self.release_if_only_init_left(LeftoverWatch { resources, first })
                    .await
            }
            // There is no PID namespace.
            Ok(None) => {
                self.drain_late_output(None).await;
                resources.release().await
            }
            Err(error) => {
                // It is unknown when the resources can be released, so kill the tree
                // and release them when it is gone.
                tracing::warn!(%error, "cannot watch leftover processes of a sandbox; killing them");
                self.process.terminate(Some(Duration::ZERO));
                self.resources = Some(resources);
                self.drain_late_output(None).await;
                None
            }
        }
    }

    /// Releases the host resources if only the init process of the sandbox is left.
    async fn release_if_only_init_left(
        &mut self,
        leftovers: LeftoverWatch,
    ) -> Option<RemovedPlaceholders> {
        let LeftoverWatch { resources, first } = &leftovers;
        if resources.is_only_init_left() && timeout(KILL_TIMEOUT, first.readable()).await.is_ok() {
            return leftovers.resources.release().await;
        }
        self.leftovers = Some(leftovers);
        None
    }

    /// Reads output written just after the exit, and waits a short time for the first
    /// process in the sandbox. Returns whether that one has exited.
    async fn drain_late_output(&mut self, first: Option<&ReadableFd>) -> bool {
        let until = tokio::time::Instant::now() + self.late_output_timeout;
        let mut gone = first.is_none();
        while !gone || !self.outputs.is_empty() {
            tokio::select! {
                index = readable(&self.outputs) => self.read(index, READ_BYTES),
                () = ended(first), if !gone => gone = true,
                () = sleep_until(until) => break,
            }
        }
        gone
    }

    /// Reads what the child had written when it exited, regardless of the window.
    fn drain(&mut self) {
        for output in &mut self.outputs {
            let stream = output.stream();
            for bytes in output.drain() {
                self.process.append(|journal| journal.output(stream, bytes));
            }
        }
    }
}

/// Waits until one of the outputs is readable, and returns its index.
async fn readable(outputs: &[Output]) -> usize {
    match outputs {
        [] => std::future::pending().await,
        [only] => {
            let _ = only.readable().await;
            0
        }
        [first, second, ..] => tokio::select! {
            _ = first.readable() => 0,
            _ = second.readable() => 1,
        },
    }
}

/// Waits until one of the outputs is readable if there is space, and returns its index and the space.
async fn readable_with(outputs: &[Output], space: ReadAllowance) -> (usize, usize) {
    match space {
        ReadAllowance::Bytes(bytes) => (readable(outputs).await, bytes),
        ReadAllowance::WindowFull | ReadAllowance::NoMemory => std::future::pending().await,
    }
}

/// Waits for the exit of a watched process.
async fn ended(process: Option<&ReadableFd>) {
    match process {
        // Fails only when the runtime shuts down.
        Some(process) => drop(process.readable().await),
        None => std::future::pending().await,
    }
}
