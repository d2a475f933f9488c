//! Starts a confined process and waits until its program runs.
//!
//! A start has two parts. [`Sandbox::prepare_process`] plans and prepares on a blocking thread; dropping
//! its future abandons the start without a trace. [`PreparedProcess::start`] spawns bubblewrap and waits
//! for the helper's report.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outpost_process::{Child, Command, SpawnError, SpawnErrorKind, Spawner, Stdio};
use tokio::time::timeout;

use super::helper::{HelperChannel, HelperStderr, Step};
use super::host_resources::HostResources;
use super::preflight::{HostSupport, Unenforceable};
use super::prepare_error::PrepareError;
use super::running::{Failure, Running};
use super::sandbox::{PreparedCommand, Program, Sandbox};
use crate::planning::{self, HostFileSystem};
use crate::policy::Policy;
use crate::{Access, Plan, SandboxError};

/// How many processes are prepared at the same time. Preparation is CPU-bound.
pub(super) const MAX_PREPARATIONS: usize = 8;

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
    launch: Launch,
    /// Named in error messages.
    program: OsString,
    cwd: PathBuf,
}

/// A confined helper that is ready to be spawned.
#[derive(Debug)]
pub struct PreparedHelper {
    launch: Launch,
    denied: Vec<PathBuf>,
    absent: Vec<PathBuf>,
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
            candidates: strings.candidates,
            argv: strings.argv,
            env: strings.env,
            cwd: command.cwd.clone(),
        };
        let (_, prepared) = self.plan_and_prepare(request, None, program, limit).await?;
        Ok(PreparedProcess {
            launch: Launch::new(prepared, command.stdio),
            program: command.argv.into_iter().next().unwrap_or_default(),
            cwd: command.cwd,
        })
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
    ) -> Result<PreparedHelper, LaunchError> {
        let prepared = self.plan_and_prepare(request, Some(access), Program::none(), limit);
        let (plan, mut prepared) = prepared.await?;
        let absent = std::mem::take(&mut prepared.absent);
        let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
        Ok(PreparedHelper {
            denied: denied.map(|rule| rule.path.clone()).collect(),
            absent,
            launch: Launch::new(prepared, Stdio::Pipes { stdin: false }),
        })
    }

    async fn plan_and_prepare(
        &self,
        request: SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
        limit: Duration,
    ) -> Result<(Plan, PreparedCommand), LaunchError> {
        let prepared = self.prepare_on_thread(request, access, program);
        let (plan, prepared) = timeout(limit, prepared)
            .await
            .map_err(|_| SandboxError::Timeout { limit })??;
        for warning in &plan.warnings {
            tracing::warn!("sandbox: {warning}");
        }
        Ok((plan, prepared))
    }

    /// Waits for a free preparation slot, then plans and prepares on a blocking thread.
    async fn prepare_on_thread(
        &self,
        request: SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
    ) -> Result<(Plan, PreparedCommand), LaunchError> {
        let slot = Arc::clone(self.preparations()).acquire_owned().await;
        let slot = slot.map_err(|_| SandboxError::PlanningPanicked)?;
        let sandbox = self.clone();
        let preparation = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            sandbox.prepare_request(&request, access, program)
        });
        // The task is never cancelled, so it fails only by a panic.
        preparation
            .await
            .map_err(|_| SandboxError::PlanningPanicked)?
    }

    fn prepare_request(
        &self,
        request: &SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
    ) -> Result<(Plan, PreparedCommand), LaunchError> {
        // First, because a missing prerequisite explains all other errors.
        self.preflight().map_err(PrepareError::from)?;
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
        let mut prepared = self.prepare(&plan, program)?;
        if access.is_some() {
            // After preparation, which creates placeholders.
            prepared.absent.extend(HostFileSystem.placeholders(&plan));
        }
        Ok((plan, prepared))
    }
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
        self,
        spawner: &Spawner,
        limit: Duration,
    ) -> Result<(Child, HostResources), LaunchError> {
        let (channel, mut running) = self.launch.spawn(spawner).await?;
        let outcome = running.wait_started(&channel, limit).await;
        let Err(failure) = outcome else {
            return running.into_parts();
        };
        Err(match failure {
            Failure::Step(Step::Execute, errno) => {
                running.read_error().await;
                SpawnError::not_executed(self.program, errno).into()
            }
            Failure::Step(Step::WorkingDirectory, errno) => {
                running.read_error().await;
                SpawnError::not_entered(self.cwd, errno).into()
            }
            failure => running.into_error(failure).await.into(),
        })
    }
}

impl PreparedHelper {
    /// Spawns the helper and waits until it is confined, within `limit`.
    ///
    /// # Errors
    /// If the helper can't be spawned or reports a failed step.
    pub async fn start(
        self,
        spawner: &Spawner,
        limit: Duration,
    ) -> Result<HelperProcess, LaunchError> {
        let (channel, mut running) = self.launch.spawn(spawner).await?;
        if let Err(failure) = running.wait_ready(&channel, limit).await {
            return Err(running.into_error(failure).await.into());
        }
        let socket = channel.into_socket().map_err(PrepareError::from)?;
        let (child, resources) = running.into_parts()?;
        Ok(HelperProcess {
            child,
            resources,
            socket,
            denied: self.denied,
            absent: self.absent,
        })
    }
}

/// A command to spawn, with the server's side of the helper.
#[derive(Debug)]
struct Launch {
    command: Command,
    channel: HelperChannel,
    stderr: Option<HelperStderr>,
    resources: HostResources,
}

impl Launch {
    fn new(prepared: PreparedCommand, stdio: Stdio) -> Self {
        let PreparedCommand {
            program,
            mut argv,
            env,
            wrapper,
            resources,
            stderr,
            channel,
            ..
        } = prepared;
        let arg0 = std::mem::replace(&mut argv[0], program.into_os_string());
        let command = Command {
            argv,
            arg0: Some(arg0),
            cwd: "/".into(),
            env,
            stdio,
            wrapper: Some(wrapper),
        };
        Launch {
            command,
            channel,
            stderr,
            resources,
        }
    }

    async fn spawn(self, spawner: &Spawner) -> Result<(HelperChannel, Running), LaunchError> {
        let child = spawner.spawn(self.command).await.map_err(wrapper_error)?;
        let running = Running::new(child, self.stderr, self.resources);
        Ok((self.channel, running))
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
        let _all = Arc::clone(sandbox.preparations())
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
