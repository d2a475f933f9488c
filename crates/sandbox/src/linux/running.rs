//! Waits for a spawned helper, and ends it if it fails.

use std::time::Duration;

use outpost_process::{Child, ReadableFd};
use tokio::time::timeout;

use super::helper::{HelperChannel, HelperMessage, HelperStderr, Report, Step};
use super::host_resources::HostResources;
use super::launch::LaunchError;
use crate::SandboxError;

/// How much of the helper's output an error message includes.
const MAX_OUTPUT: usize = 1024;

/// How long a failed helper may take to exit by itself before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a killed helper may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// A spawned helper that hasn't reported success yet.
pub(super) struct Running {
    child: KillOnDrop,
    stderr: Option<HelperStderr>,
    resources: HostResources,
}

/// The reason why a helper did not get ready.
pub(super) enum Failure {
    /// It reported this step and errno.
    Step(Step, i32),
    /// It closed the channel without a report, or sent an invalid one.
    Exited,
    /// It took longer than this.
    Timeout(Duration),
}

/// The sign that setup succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadyWhen {
    /// The helper reported that it is ready; it keeps the channel open.
    Reported,
    /// The channel closed after the report, because the program was executed.
    Closed,
}

impl Running {
    pub(super) fn new(
        child: Child,
        stderr: Option<HelperStderr>,
        resources: HostResources,
    ) -> Self {
        Self {
            child: KillOnDrop(Some(child)),
            stderr,
            resources,
        }
    }

    /// Waits until the program was executed.
    pub(super) async fn wait_started(
        &mut self,
        channel: &HelperChannel,
        limit: Duration,
    ) -> Result<(), Failure> {
        self.wait(channel, ReadyWhen::Closed, limit).await
    }

    /// Waits until the helper is confined and serves requests.
    pub(super) async fn wait_ready(
        &mut self,
        channel: &HelperChannel,
        limit: Duration,
    ) -> Result<(), Failure> {
        self.wait(channel, ReadyWhen::Reported, limit).await
    }

    async fn wait(
        &mut self,
        channel: &HelperChannel,
        until: ReadyWhen,
        limit: Duration,
    ) -> Result<(), Failure> {
        let received = timeout(limit, self.receive(channel, until)).await;
        received.unwrap_or(Err(Failure::Timeout(limit)))
    }

    async fn receive(&mut self, channel: &HelperChannel, until: ReadyWhen) -> Result<(), Failure> {
        let Ok(readable) = channel.try_clone_fd().and_then(ReadableFd::new) else {
            return Err(Failure::Exited);
        };
        let mut is_ready = false;
        loop {
            match channel.recv() {
                Ok(HelperMessage::NotYet) => {
                    if readable.readable().await.is_err() {
                        return Err(Failure::Exited);
                    }
                }
                Ok(HelperMessage::Report {
                    report: Report::Ready,
                    sender,
                    init,
                }) => {
                    is_ready = true;
                    self.resources.set_init(init);
                    if let (Some(child), Some(sender)) = (&self.child.0, sender) {
                        child.control.wraps(sender);
                    }
                    if until == ReadyWhen::Reported {
                        return Ok(());
                    }
                }
                Ok(HelperMessage::Report {
                    report: Report::Failed(step, errno),
                    ..
                }) => return Err(Failure::Step(step, errno)),
                Ok(HelperMessage::Closed) if is_ready => return Ok(()),
                Ok(HelperMessage::Closed) | Err(_) => return Err(Failure::Exited),
            }
        }
    }

    pub(super) fn into_parts(mut self) -> Result<(Child, HostResources), LaunchError> {
        let child = self.child.0.take().ok_or(SandboxError::PlanningPanicked)?;
        Ok((child, self.resources))
    }

    pub(super) async fn into_error(self, failure: Failure) -> SandboxError {
        match failure {
            Failure::Step(step, errno) => {
                let stderr = self.read_error().await;
                SandboxError::Helper {
                    step,
                    errno,
                    stderr,
                }
            }
            Failure::Exited => SandboxError::helper_exited(self.read_error().await),
            Failure::Timeout(limit) => {
                self.read_error().await;
                SandboxError::Timeout { limit }
            }
        }
    }

    /// Ends all processes and returns the first line that bubblewrap or the helper wrote.
    pub(super) async fn read_error(mut self) -> String {
        let Some(mut child) = self.child.0.take() else {
            return String::new();
        };
        // It may hang after the failure.
        let exited = timeout(EXIT_TIMEOUT, child.exit.wait()).await;
        // If the program ran after all, it may have started others.
        let _ = child.control.kill_tree();
        if exited.is_err() {
            let _ = timeout(KILL_TIMEOUT, child.exit.wait()).await;
        }
        let mut output = match self.stderr.take() {
            Some(stderr) => stderr.read(MAX_OUTPUT),
            None => Vec::new(),
        };
        for stream in &mut child.outputs {
            output.extend(stream.drain().concat());
        }
        child.exit.reap();
        child.control.release_tree();
        let output = String::from_utf8_lossy(&output[..output.len().min(MAX_OUTPUT)]);
        let line = output.lines().find(|line| !line.trim().is_empty());
        line.unwrap_or_default().trim().to_owned()
    }
}

/// A child that is killed with its process tree if dropped.
struct KillOnDrop(Option<Child>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(child) = &self.0
            && let Err(error) = child.control.kill_tree()
        {
            tracing::warn!(%error, "cannot kill an abandoned child");
        }
    }
}
