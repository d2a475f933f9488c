//! Runs preparations on blocking threads, a limited number at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::turns::{TurnKey, Turns};
use crate::SandboxError;

/// How many processes are prepared at the same time. Preparation is CPU-bound.
const MAX_PREPARATIONS: usize = 8;

/// How many threads may hang in a file system after their preparation has timed out.
const MAX_ABANDONED: usize = 64;

/// Prepares processes within a time limit. A preparation that exceeds it leaves its thread behind and gives
/// its turn to the next one.
#[derive(Debug)]
pub(super) struct Preparations {
    turns: Turns,
    /// One permit per thread, abandoned ones included.
    threads: Arc<Semaphore>,
}

impl Preparations {
    pub(super) fn new() -> Self {
        Self {
            turns: Turns::new(MAX_PREPARATIONS),
            threads: Arc::new(Semaphore::new(MAX_PREPARATIONS + MAX_ABANDONED)),
        }
    }

    /// Waits for the client's turn, then runs `prepare` on a blocking thread.
    ///
    /// If this is cancelled, the turn is kept until the thread is done or `limit` has passed.
    ///
    /// # Errors
    /// If it takes longer than `limit` in all, if too many threads hang, or if `prepare` panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        client: TurnKey,
        limit: Duration,
        prepare: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SandboxError> {
        let deadline = Instant::now() + limit;
        let preparation = async {
            let turn = self.turns.take(client).await;
            let thread = Arc::clone(&self.threads).try_acquire_owned();
            let thread = thread.map_err(|_| SandboxError::Hanging {
                count: MAX_ABANDONED,
            })?;
            // A result that is no longer wanted is dropped on the blocking thread.
            let (sender, receiver) = oneshot::channel();
            let running = tokio::task::spawn_blocking(move || {
                let _thread = thread;
                let _ = sender.send(prepare());
            });
            // Ends at the deadline at the latest.
            tokio::spawn(async move {
                let _turn = turn;
                let _ = timeout_at(deadline, running).await;
            });
            // The sender is dropped early only by a panic.
            receiver.await.map_err(|_| SandboxError::PlanningPanicked)
        };
        let prepared = timeout(limit, preparation).await;
        prepared.unwrap_or(Err(SandboxError::Timeout { limit }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn key(client: usize) -> TurnKey {
        TurnKey { peer: 0, client }
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Runs a preparation that hangs until the sender is dropped, and waits until it has timed out.
    async fn hang(preparations: &Preparations) -> (mpsc::SyncSender<()>, SandboxError) {
        let (hanging, receiver) = mpsc::sync_channel::<()>(0);
        let limit = Duration::from_millis(1);
        let run = preparations.run(key(1), limit, move || receiver.recv().is_ok());
        (hanging, run.await.expect_err("it hangs"))
    }

    #[tokio::test]
    async fn hanging_preparations_do_not_stop_others() {
        let preparations = Preparations::new();
        let mut hanging = Vec::new();
        for _ in 0..=MAX_PREPARATIONS {
            let (sender, error) = hang(&preparations).await;
            assert_eq!(
                error.to_string(),
                "failed to prepare process sandbox: it took longer than 1ms"
            );
            hanging.push(sender);
        }
        let prepared = preparations.run(key(2), LONG, || 7).await;
        assert_eq!(prepared.expect("has a turn"), 7);
    }

    #[tokio::test]
    async fn too_many_hanging_preparations_are_an_error() {
        let preparations = Preparations::new();
        let mut hanging = Vec::new();
        let refused = loop {
            match hang(&preparations).await {
                (sender, SandboxError::Timeout { .. }) => hanging.push(sender),
                (_, error) => break error,
            }
        };
        assert_eq!(preparations.threads.available_permits(), 0);
        assert_eq!(
            refused.to_string(),
            "failed to prepare process sandbox: more than 64 earlier ones wait for file systems that do not \
             answer; repair or unmount these"
        );
        // Preparations that complete make space.
        hanging.clear();
        let all = (MAX_PREPARATIONS + MAX_ABANDONED)
            .try_into()
            .expect("small");
        drop(preparations.threads.acquire_many(all).await);
        preparations
            .run(key(2), LONG, || ())
            .await
            .expect("has a turn");
    }

    #[tokio::test]
    async fn panic_is_an_error() {
        let preparations = Preparations::new();
        let prepared: Result<(), _> = preparations
            .run(key(1), LONG, || panic!("on purpose"))
            .await;
        let error = prepared.expect_err("it panics");
        assert!(matches!(error, SandboxError::PlanningPanicked));
    }
}
