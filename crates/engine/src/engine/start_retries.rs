//! Retries of sandboxed starts that failed for a transient reason.

use std::time::Duration;

use tokio::time::Instant;

use crate::StartError;

/// The maximum number of attempts.
const MAX_ATTEMPTS: usize = 24;

/// Repeats an attempt that failed for a transient reason, limited by count and time: no attempt starts
/// after `limit`. In a directory with many writers, placeholders of other sandboxes come and go, so a
/// mount point can disappear during the setup.
pub(super) async fn retry_transient<T, F: Future<Output = Result<T, StartError>>>(
    limit: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StartError> {
    let until = Instant::now() + limit;
    for _ in 1..MAX_ATTEMPTS {
        match attempt().await {
            Err(StartError::Sandbox(error)) if error.is_transient() && Instant::now() < until => {
                tracing::debug!(%error, "retrying sandboxed start");
            }
            result => return result,
        }
    }
    attempt().await
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
        let limit = Duration::from_secs(20);
        let count = async |outcomes: &[Result<(), i32>], pause: Duration| {
            let mut attempts = 0;
            let result = retry_transient(limit, || {
                attempts += 1;
                let outcome = *outcomes.get(attempts - 1).unwrap_or(&Err(libc::ENOENT));
                async move {
                    // sleep: time is paused here
                    tokio::time::sleep(pause).await;
                    outcome.or_else(failure)
                }
            });
            (result.await.is_ok(), attempts)
        };
        assert_eq!(count(&[Ok(())], Duration::ZERO).await, (true, 1));
        let denied = [Err(libc::EACCES)];
        assert_eq!(
            count(&denied, Duration::ZERO).await,
            (false, 1),
            "not transient"
        );
        let gone = [Err(libc::ENOENT), Ok(())];
        assert_eq!(count(&gone, Duration::ZERO).await, (true, 2));
        assert_eq!(count(&[], Duration::ZERO).await, (false, MAX_ATTEMPTS));
        assert_eq!(count(&[], limit).await, (false, 1), "after the deadline");
    }
}
