//! Starts a confined process and waits until its program runs.
//!
//! A start has two parts. [`Sandbox::prepare_process`] plans and prepares on a blocking thread; dropping
//! its future abandons the start without a trace. [`PreparedProcess::start`] spawns bubblewrap and waits
//! for the helper's report.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outpost_process::{Child, Command, Control, ReadableFd, SpawnError, SpawnErrorKind, Spawner};
use tokio::time::timeout;

use super::helper::{HelperChannel, Program, Report, Step};
use super::host_resources::HostResources;
use super::placeholder::is_placeholder;
use super::preflight::{HostSupport, Unenforceable};
use super::sandbox::Sandbox;
use crate::error::{PrepareError, SandboxError};
use crate::planning::{self, HostFileSystem};
use crate::policy::Policy;
use crate::{Access, Plan, Warning};

/// How much of the helper's output an error message includes.
pub(super) const MAX_OUTPUT: usize = 1024;

/// How long a failed helper may take to exit by itself before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a killed helper may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason why a confined process did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The process could not be spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The sandbox could not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl From<PrepareError> for LaunchError {
    fn from(error: PrepareError) -> Self {
        LaunchError::Sandbox(error.into())
    }
}

/// The policy that a process is confined by.
#[derive(Clone, Debug)]
pub struct SandboxRequest {
    /// The policy.
    pub policy: Policy,
    /// The `TMPDIR` of the process, for policies that grant it.
    pub tmpdir: Option<OsString>,
}

/// The access of a helper that serves file operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerAccess {
    /// Only read; the policy's writable paths are read-only.
    Read,
    /// Read and write, as the policy allows.
    Write,
}

/// A confined process that is ready to be spawned.
#[derive(Debug)]
pub struct PreparedProcess {
    /// The command to spawn: bubblewrap, or the helper at [`Level::Landlock`](crate::Level::Landlock). If
    /// the wrapper has its own stdio, the streams of the confined program follow the passed descriptors.
    pub command: Command,
    /// To be kept until no process of the sandbox lives.
    pub resources: HostResources,
    /// Paths that the plan denies.
    pub(super) denied: Vec<PathBuf>,
    /// Paths that exist inside only as masks over placeholders.
    pub(super) absent: Vec<PathBuf>,
    /// Named in error messages.
    pub(super) program: OsString,
    pub(super) cwd: PathBuf,
    /// The stderr of bubblewrap and the helper.
    pub(super) stderr: Option<OwnedFd>,
    pub(super) channel: HelperChannel,
}

/// A confined helper that serves requests on its socket.
#[derive(Debug)]
pub struct HelperProcess {
    /// The helper's process.
    pub child: Child,
    /// To be kept until no process of the sandbox lives.
    pub resources: HostResources,
    /// The server's end of the channel.
    pub socket: OwnedFd,
    /// Paths that the plan denies.
    pub denied: Vec<PathBuf>,
    /// Paths that exist inside only as masks over placeholders.
    pub absent: Vec<PathBuf>,
}

impl Sandbox {
    /// Returns what this host can enforce, without blocking the caller.
    ///
    /// # Errors
    /// If something is missing.
    pub async fn support(&self) -> Result<HostSupport, Unenforceable> {
        let sandbox = self.clone();
        let probe = tokio::task::spawn_blocking(move || sandbox.preflight());
        probe.await.map_err(|error| Unenforceable::Probe {
            message: error.to_string(),
        })?
    }

    /// Plans and prepares a confined process, within `limit`.
    ///
    /// The work runs on a blocking thread and continues there after a timeout, so that a hanging file
    /// system blocks that thread and not the client.
    ///
    /// # Errors
    /// If the policy can't be enforced on this host.
    pub async fn prepare_process(
        &self,
        request: SandboxRequest,
        command: Command,
        limit: Duration,
    ) -> Result<PreparedProcess, LaunchError> {
        let strings = command.exec_strings()?;
        let program = Program {
            candidates: OsString::from_vec(strings.candidates),
            argv: OsString::from_vec(strings.argv),
            env: OsString::from_vec(strings.env),
            cwd: command.cwd,
        };
        let prepared = self.prepare_within(limit, request, None, program);
        let mut prepared = prepared.await?;
        prepared.command.stdio = command.stdio;
        prepared.program = command.argv.into_iter().next().unwrap_or_default();
        Ok(prepared)
    }

    /// Plans and prepares a confined helper that serves requests, within `limit`.
    ///
    /// # Errors
    /// If the policy can't be enforced on this host.
    pub async fn prepare_helper(
        &self,
        request: SandboxRequest,
        access: WorkerAccess,
        limit: Duration,
    ) -> Result<PreparedProcess, LaunchError> {
        self.prepare_within(limit, request, Some(access), Program::none())
            .await
    }

    /// Waits for a free preparation slot, then plans and prepares on a blocking thread.
    async fn prepare_within(
        &self,
        limit: Duration,
        request: SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
    ) -> Result<PreparedProcess, LaunchError> {
        let sandbox = self.clone();
        let preparation = async {
            let slot = Arc::clone(&self.shared.preparations).acquire_owned().await;
            let slot = slot.map_err(|_| SandboxError::PlanningPanicked)?;
            let preparation = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                sandbox.prepare_request(&request, access, program)
            });
            // The task is never cancelled, so it fails only by a panic.
            let prepared = preparation.await;
            prepared.map_err(|_| SandboxError::PlanningPanicked)?
        };
        let prepared = timeout(limit, preparation).await;
        let (prepared, warnings) =
            prepared.unwrap_or(Err(SandboxError::Timeout { limit }.into()))?;
        for warning in warnings {
            tracing::warn!("sandbox: {warning}");
        }
        Ok(prepared)
    }

    fn prepare_request(
        &self,
        request: &SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
    ) -> Result<(PreparedProcess, Vec<Warning>), LaunchError> {
        // First, because a missing prerequisite explains all other errors.
        let support = self.preflight().map_err(PrepareError::from)?;
        // Before planning, which would report a missing directory as a missing grant.
        check_directory(&program.cwd)?;
        let tmpdir = request.tmpdir.as_deref().filter(|dir| !dir.is_empty());
        let context = planning::ChildPaths {
            cwd: &program.cwd,
            tmpdir: tmpdir.map(Path::new),
        };
        let limits = planning::PlanLimits::default();
        let plan = planning::plan(&request.policy, &context, &HostFileSystem, &limits);
        let mut plan = plan.map_err(SandboxError::from)?;
        if access == Some(WorkerAccess::Read) {
            plan = plan.read_only();
        }
        let mut prepared = self.prepare_with(&support, &plan, program)?;
        if access.is_some() {
            // After preparation, which creates placeholders.
            prepared.absent.extend(readable_placeholders(&plan));
        }
        Ok((prepared, plan.warnings))
    }
}

/// Returns the readable paths of a plan at which a placeholder exists. A process confined by the plan
/// sees an empty directory there that has to count as missing.
fn readable_placeholders(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let readable = plan.rules.iter().filter(|rule| rule.access == Access::Read);
    let masked = readable.filter(|rule| is_placeholder(&rule.path));
    masked.map(|rule| rule.path.clone())
}

/// Checks that the working directory exists. The helper finds out whether it can be entered.
fn check_directory(directory: &Path) -> Result<(), SpawnError> {
    let errno = match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => libc::ENOTDIR,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    Err(SpawnError::not_entered(directory, errno))
}

impl PreparedProcess {
    /// Spawns the process and waits until its program runs, within `limit`. If it fails, all of its
    /// processes are killed.
    ///
    /// # Errors
    /// If the process can't be spawned, the helper reports a failed step, or the program can't be
    /// executed.
    pub async fn start(
        mut self,
        spawner: &Spawner,
        limit: Duration,
    ) -> Result<(Child, HostResources), LaunchError> {
        let program = std::mem::take(&mut self.program);
        let cwd = std::mem::take(&mut self.cwd);
        let started = self.spawn(spawner, limit, true).await;
        let started = started.map(|(child, resources, _)| (child, resources));
        started.map_err(|error| {
            let LaunchError::Sandbox(SandboxError::Helper { step, errno, .. }) = &error else {
                return error;
            };
            match step {
                Step::Execute => SpawnError::not_executed(program, *errno).into(),
                Step::WorkingDirectory => SpawnError::not_entered(cwd, *errno).into(),
                _ => error,
            }
        })
    }

    /// Spawns a helper that serves requests and waits until it is confined, within `limit`.
    ///
    /// # Errors
    /// If the helper can't be spawned or reports a failed step.
    pub async fn start_helper(
        mut self,
        spawner: &Spawner,
        limit: Duration,
    ) -> Result<HelperProcess, LaunchError> {
        let denied = std::mem::take(&mut self.denied);
        let absent = std::mem::take(&mut self.absent);
        let (child, resources, channel) = self.spawn(spawner, limit, false).await?;
        Ok(HelperProcess {
            child,
            resources,
            socket: channel.into_socket().map_err(PrepareError::from)?,
            denied,
            absent,
        })
    }

    async fn spawn(
        self,
        spawner: &Spawner,
        limit: Duration,
        executes: bool,
    ) -> Result<(Child, HostResources, HelperChannel), LaunchError> {
        let mut resources = self.resources;
        let child = spawner.spawn(self.command).await.map_err(wrapper_error)?;
        let mut kill_on_drop = KillOnDrop(Some(child.control.clone()));
        let ready = wait_ready(&self.channel, executes, &child.control, &mut resources);
        let failure = match timeout(limit, ready).await {
            Ok(Ok(())) => {
                kill_on_drop.0 = None;
                return Ok((child, resources, self.channel));
            }
            Ok(Err(failure)) => Ok(failure),
            Err(_) => Err(SandboxError::Timeout { limit }),
        };
        let stderr = end(child, self.stderr).await;
        kill_on_drop.0 = None;
        Err(match failure? {
            Some((step, errno)) => SandboxError::Helper {
                step,
                errno,
                stderr,
            },
            None => SandboxError::helper_exited(stderr),
        }
        .into())
    }
}

/// Waits for the report of the helper and, if it executes a program, until that closed the channel. Fails
/// with the step that failed and its errno, if the helper reported one.
async fn wait_ready(
    channel: &HelperChannel,
    executes: bool,
    control: &Control,
    resources: &mut HostResources,
) -> Result<(), Option<(Step, i32)>> {
    let readable = channel.try_clone_fd().and_then(ReadableFd::new);
    let readable = readable.map_err(|_| None)?;
    let mut is_ready = false;
    loop {
        match channel.recv() {
            Ok(Some(received)) => {
                if let Report::Failed(step, errno) = received.report {
                    return Err(Some((step, errno)));
                }
                is_ready = true;
                resources.set_init(received.init);
                if let Some(sender) = received.sender {
                    control.wraps(sender);
                }
                if !executes {
                    return Ok(());
                }
            }
            Ok(None) if is_ready => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                readable.readable().await.map_err(|_| None)?;
            }
            Ok(None) | Err(_) => return Err(None),
        }
    }
}

/// Ends all processes of a failed start and returns the first line that bubblewrap or the helper wrote.
async fn end(mut child: Child, stderr: Option<OwnedFd>) -> String {
    // It may hang after the failure.
    let exited = timeout(EXIT_TIMEOUT, child.exit.wait()).await;
    // If the program ran after all, it may have started others.
    let _ = child.control.kill_tree();
    if exited.is_err() {
        let _ = timeout(KILL_TIMEOUT, child.exit.wait()).await;
    }
    let mut output = stderr
        .map(|stderr| read_available(&stderr))
        .unwrap_or_default();
    for stream in &mut child.outputs {
        output.extend(stream.drain().concat());
    }
    child.exit.reap();
    child.control.release_tree();
    output.truncate(MAX_OUTPUT);
    first_line(&output)
}

/// Returns up to [`MAX_OUTPUT`] bytes that were written to a pipe so far. Bubblewrap and the helper write
/// their message at once, so one read gets it.
pub(super) fn read_available(pipe: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; MAX_OUTPUT];
    let length = rustix::io::read(pipe, &mut bytes).unwrap_or_default();
    bytes.truncate(length);
    bytes
}

/// Returns the first line that isn't blank.
pub(super) fn first_line(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let line = output.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}

/// Kills a process tree if dropped.
struct KillOnDrop(Option<Control>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(control) = &self.0
            && let Err(error) = control.kill_tree()
        {
            tracing::warn!(%error, "cannot kill an abandoned child");
        }
    }
}

/// Maps a failure to execute bubblewrap, which must not be reported as a failure to execute the program.
fn wrapper_error(error: SpawnError) -> LaunchError {
    match (error.kind(), error.raw_os_error()) {
        (SpawnErrorKind::NotFound | SpawnErrorKind::NotExecutable, Some(errno)) => {
            SandboxError::Helper {
                step: Step::Bubblewrap,
                errno,
                stderr: String::new(),
            }
            .into()
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sandbox::MAX_PREPARATIONS;
    use crate::policy::FileSystem;
    use crate::{HelperCommand, Level, Network};

    /// As if planning hung on a file system in every slot.
    #[tokio::test(start_paused = true)]
    async fn preparation_times_out() {
        let command = HelperCommand {
            program: "/nonexistent".into(),
            args: Vec::new(),
        };
        let sandbox = Sandbox::new(command, Level::default());
        let _all = Arc::clone(&sandbox.shared.preparations)
            .try_acquire_many_owned(MAX_PREPARATIONS as u32)
            .expect("all slots are free");
        let request = SandboxRequest {
            policy: Policy {
                file_system: FileSystem::restricted(Vec::new()),
                network: Network::Restricted,
                cwd: "/".into(),
                workspace_roots: Vec::new(),
            },
            tmpdir: None,
        };
        let limit = Duration::from_secs(20);
        let started = tokio::time::Instant::now();
        let prepared = sandbox.prepare_helper(request, WorkerAccess::Read, limit);
        let error = prepared.await.map(drop).expect_err("no slot is free");
        assert!(started.elapsed() < limit * 2);
        assert_eq!(
            error.to_string(),
            "failed to prepare process sandbox: it took longer than 20s"
        );
    }
}
