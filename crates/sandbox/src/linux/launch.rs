//! Starts a sandboxed process and waits until its program runs.
//!
//! A start has two parts. [`Sandbox::prepare_process`](crate::Sandbox::prepare_process) plans and
//! prepares on a blocking thread; dropping its future abandons the start without a trace.
//! [`PreparedProcess::start`] spawns bubblewrap and waits for the helper's report.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use outpost_process::{Child, Command, Control, ReadableFd, SpawnError, SpawnErrorKind, Spawner};
use tokio::time::timeout;

use super::helper::{HelperChannel, Report, Step};
use super::host_resources::HostResources;
use crate::error::{PrepareError, SandboxError};

/// How much of the helper's output an error message includes.
pub(super) const MAX_OUTPUT: usize = 1024;

/// How long a failed helper may take to exit before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a killed helper may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason why a sandboxed process did not start.
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

/// A sandboxed process that is ready to be spawned.
#[derive(Debug)]
pub struct PreparedProcess {
    /// The command to spawn: bubblewrap, or the helper at [`Level::Landlock`]. If the wrapper has
    /// its own stdio, the streams of the sandboxed program follow the passed descriptors.
    pub command: Command,
    /// To be kept until no process of the sandbox lives.
    pub resources: HostResources,
    /// Paths that the plan denies.
    pub(super) denied: Vec<PathBuf>,
    /// Paths that must stay absent. Inside, an empty masked directory is mounted there; file workers
    /// report it as missing.
    pub(super) absent: Vec<PathBuf>,
    /// Named in error messages.
    pub(super) program: OsString,
    pub(super) cwd: PathBuf,
    /// The stderr of bubblewrap and the helper.
    pub(super) stderr: Option<OwnedFd>,
    pub(super) channel: HelperChannel,
    /// The number of TCP listeners that the helper has to send.
    pub(super) listen: usize,
}

/// A sandboxed helper that is ready to be spawned.
#[derive(Debug)]
pub struct PreparedHelper(pub(super) PreparedProcess);

/// A sandboxed helper that serves requests on its socket.
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
    /// Paths that must stay absent. Inside, an empty masked directory is mounted there; file workers
    /// report it as missing.
    pub absent: Vec<PathBuf>,
}

impl PreparedProcess {
    /// Spawns the process and waits until its program runs, within `limit`. If it fails, all of its
    /// processes are killed.
    ///
    /// # Errors
    /// If the process can't be spawned, the helper reports a failed step, the program can't be executed, or
    /// `cancelled` completes before.
    pub async fn start<E: From<LaunchError>>(
        mut self,
        spawner: &Spawner,
        limit: Duration,
        cancelled: impl Future<Output = E>,
    ) -> Result<(Child, HostResources), E> {
        let program = std::mem::take(&mut self.program);
        let cwd = std::mem::take(&mut self.cwd);
        let started = self.spawn(spawner, limit, true, cancelled).await;
        let started = started.map_err(|error| {
            let LaunchError::Sandbox(SandboxError::Helper { step, errno, .. }) = &error else {
                return error;
            };
            match step {
                Step::Execute => SpawnError::not_executed(program, *errno).into(),
                Step::WorkingDirectory => SpawnError::not_entered(cwd, *errno).into(),
                _ => error,
            }
        });
        let mut started = started??;
        started.kill_on_drop.0 = None;
        Ok((started.child, started.resources))
    }

    /// Spawns the process and waits until it is set up, unless `cancelled` completes before.
    async fn spawn<E>(
        self,
        spawner: &Spawner,
        limit: Duration,
        executes: bool,
        cancelled: impl Future<Output = E>,
    ) -> Result<Result<Started, E>, LaunchError> {
        let mut resources = self.resources;
        let mut cancelled = pin!(cancelled);
        // Dropping the spawn undoes it.
        let child = tokio::select! {
            child = spawner.spawn(self.command) => child.map_err(wrapper_error)?,
            error = &mut cancelled => return Ok(Err(error)),
        };
        let mut kill_on_drop = KillOnDrop(Some(child.control.clone()));
        let listen = self.listen;
        let ready = wait_ready(
            &self.channel,
            executes,
            listen,
            &child.control,
            &mut resources,
        );
        let ready = tokio::select! {
            ready = timeout(limit, ready) => ready,
            error = &mut cancelled => {
                let _ = child.control.kill_tree();
                end(child, self.stderr).await;
                kill_on_drop.0 = None;
                resources.release().await;
                return Ok(Err(error));
            }
        };
        let failure = match ready {
            Ok(Ok(())) => {
                return Ok(Ok(Started {
                    child,
                    resources,
                    channel: self.channel,
                    kill_on_drop,
                }));
            }
            Ok(Err(failure)) => Ok(failure),
            Err(_) => Err(SandboxError::Timeout { limit }),
        };
        let stderr = end(child, self.stderr).await;
        kill_on_drop.0 = None;
        resources.release().await;
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

impl PreparedHelper {
    /// Spawns the helper and waits until it is sandboxed, within `limit`. If it fails, all of its
    /// processes are killed.
    ///
    /// # Errors
    /// If the helper can't be spawned or reports a failed step.
    pub async fn start(
        mut self,
        spawner: &Spawner,
        limit: Duration,
    ) -> Result<HelperProcess, LaunchError> {
        let denied = std::mem::take(&mut self.0.denied);
        let absent = std::mem::take(&mut self.0.absent);
        let cancelled = std::future::pending::<LaunchError>();
        let mut started = self.0.spawn(spawner, limit, false, cancelled).await??;
        let socket = started.channel.into_socket().map_err(PrepareError::from)?;
        started.kill_on_drop.0 = None;
        Ok(HelperProcess {
            child: started.child,
            resources: started.resources,
            socket,
            denied,
            absent,
        })
    }
}

/// A process whose setup is complete.
struct Started {
    /// First, so that a dropped value kills the process before it removes its placeholders.
    kill_on_drop: KillOnDrop,
    child: Child,
    resources: HostResources,
    channel: HelperChannel,
}

/// Waits for the report of the helper with `listen` TCP listeners and, if it executes a program, until
/// the channel is closed by `execve`. Fails with the failed step and its errno, if the helper reported
/// one.
async fn wait_ready(
    channel: &HelperChannel,
    executes: bool,
    listen: usize,
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
                if received.tcp_listeners.len() != listen {
                    return Err(Some((Step::Listen, libc::EPROTO)));
                }
                resources.listeners = received.tcp_listeners.into_iter().map(Into::into).collect();
                is_ready = true;
                resources.set_init(received.init);
                if let Some(listener) = received.seccomp_listener {
                    resources.supervise(listener);
                }
                if let Some(helper_pid) = received.helper_pid {
                    control.wraps(helper_pid);
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

/// Ends all processes of a failed start and returns the first line that bubblewrap or the helper
/// wrote.
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

/// Returns up to [`MAX_OUTPUT`] bytes that were written to a pipe so far. Bubblewrap and the helper
/// write their message at once, so one read gets it.
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

/// Maps a failure to execute bubblewrap, which must not be reported as a failure to execute the
/// program.
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
