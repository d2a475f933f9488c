//! Retries of sandboxed starts that failed for a transient reason.

use std::time::Duration;

use tokio::time::Instant;

use crate::StartError;

/// The maximum number of attempts.
const MAX_ATTEMPTS: usize = 8;

/// Limits retries by count and time. In a directory with many writers, placeholders of other
/// sandboxes come and go, so a mount point can disappear during the setup.
pub(super) struct StartRetries {
    count: usize,
    until: Instant,
}

impl StartRetries {
    /// No attempt starts after this time.
    pub(super) fn within(time: Duration) -> Self {
        let (count, until) = (0, Instant::now() + time);
        Self { count, until }
    }

    /// Whether to retry after this outcome.
    pub(super) fn again<T>(&mut self, outcome: &Result<T, StartError>) -> bool {
        self.count += 1;
        let Err(StartError::Sandbox(error)) = outcome else {
            return false;
        };
        let in_time = self.count < MAX_ATTEMPTS && Instant::now() < self.until;
        let again = in_time && error.is_transient();
        if again {
            tracing::debug!(%error, "retrying sandboxed start");
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use outpost_sandbox::{SandboxError, Step};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_retried_within_limits() {
        let failure = |errno| -> Result<(), StartError> {
            let (step, stderr) = (Step::Mounts, String::new());
            Err(SandboxError::Helper {
                step,
                errno,
                stderr,
            }
            .into())
        };
        let within = Duration::from_secs(20);
        let mut attempts = StartRetries::within(within);
        assert!(!attempts.again(&Ok(())));
        assert!(!attempts.again(&failure(libc::EACCES)), "not transient");
        let mut attempts = StartRetries::within(within);
        let again = std::iter::repeat_with(|| attempts.again(&failure(libc::ENOENT)));
        assert_eq!(again.take_while(|again| *again).count(), MAX_ATTEMPTS - 1);
        let mut attempts = StartRetries::within(within);
        tokio::time::advance(within).await;
        assert!(
            !attempts.again(&failure(libc::ENOENT)),
            "after the deadline"
        );
    }
}
