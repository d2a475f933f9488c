//! Trying again what has failed for a passing reason.

use std::time::Duration;

use tokio::time::Instant;

use crate::StartError;

/// The most of them.
const ATTEMPTS: usize = 8;

/// How often something may be tried that fails for what was so for a moment only: in a directory that many
/// may write, others hold places of their own for as long as their processes run.
pub(super) struct Attempts {
    count: usize,
    until: Instant,
}

impl Attempts {
    /// None is begun later than this.
    pub(super) fn within(time: Duration) -> Self {
        let (count, until) = (0, Instant::now() + time);
        Self { count, until }
    }

    /// Whether to try again after this.
    pub(super) fn again<T>(&mut self, outcome: &Result<T, StartError>) -> bool {
        self.count += 1;
        let Err(StartError::Sandbox(refusal)) = outcome else {
            return false;
        };
        let in_time = self.count < ATTEMPTS && Instant::now() < self.until;
        let again = in_time && refusal.is_of_the_moment();
        if again {
            tracing::debug!(%refusal, "a confined process is prepared again");
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use outpost_sandbox::{Refusal, Step};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_so_for_a_moment_is_tried_again_but_not_for_ever() {
        let stage = |errno| -> Result<(), StartError> {
            let (step, said) = (Step::Mounts, String::new());
            Err(Refusal::Stage { step, errno, said }.into())
        };
        let within = Duration::from_secs(20);
        let mut attempts = Attempts::within(within);
        assert!(!attempts.again(&Ok(())));
        assert!(!attempts.again(&stage(libc::EACCES)), "it will stay so");
        let mut attempts = Attempts::within(within);
        let again = std::iter::repeat_with(|| attempts.again(&stage(libc::ENOENT)));
        assert_eq!(again.take_while(|again| *again).count(), ATTEMPTS - 1);
        let mut attempts = Attempts::within(within);
        tokio::time::advance(within).await;
        assert!(!attempts.again(&stage(libc::ENOENT)), "it took too long");
    }
}
