//! What processes that are gone have given up, for whoever gives memory back to the system.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the output that was retained and no longer is.
#[derive(Debug, Default)]
pub(crate) struct Ebb {
    given_up: AtomicU64,
    /// Wakes who waits for enough of it, at every process that goes.
    more: Notify,
}

impl Ebb {
    pub(crate) fn add(&self, bytes: u64) {
        self.given_up.fetch_add(bytes, Ordering::Relaxed);
        self.more.notify_one();
    }

    /// Waits until this much was given up since the last time. For one who waits.
    pub(crate) async fn reaches(&self, enough: u64) {
        while self.given_up.load(Ordering::Relaxed) < enough {
            self.more.notified().await;
        }
        self.given_up.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn enough_is_reached_in_any_number_of_steps_and_counted_anew() {
        let ebb = Ebb::default();
        let reached = async {
            ebb.reaches(10).await;
        };
        let steps = async {
            for _ in 0..4 {
                ebb.add(3);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(reached, steps);
        ebb.add(9);
        let again = ebb.reaches(10);
        let patience = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(patience, again).await.is_err());
    }
}
