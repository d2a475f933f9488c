//! Counts the output that exited processes have freed, so that the heap can be trimmed.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Bytes of retained output freed since the last [`FreedBytes::wait_for`].
#[derive(Debug, Default)]
pub(crate) struct FreedBytes {
    bytes: AtomicU64,
    /// Notified at every [`FreedBytes::add`].
    added: Notify,
}

impl FreedBytes {
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.added.notify_one();
    }

    /// Waits until `enough` bytes were freed since the last call. Supports one waiter.
    pub(crate) async fn wait_for(&self, enough: u64) {
        while self.bytes.load(Ordering::Relaxed) < enough {
            self.added.notified().await;
        }
        self.bytes.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sums_up_additions_and_resets_after_each_wait() {
        let freed = FreedBytes::default();
        let wait = freed.wait_for(10);
        let additions = async {
            for _ in 0..4 {
                freed.add(3);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(wait, additions);
        freed.add(9);
        let again = freed.wait_for(10);
        let timeout = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(timeout, again).await.is_err());
    }
}
