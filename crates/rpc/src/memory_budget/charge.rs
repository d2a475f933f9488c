//! Bytes that are taken from the memory of a connection, until they are dropped.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::{CLOSE_FRACTION, Share};

/// Bytes taken from a connection's share. Released on drop.
#[derive(Debug)]
pub struct MemoryCharge {
    bytes: usize,
    share: Arc<Share>,
}

impl MemoryCharge {
    pub(super) fn empty(share: &Arc<Share>) -> Self {
        MemoryCharge {
            bytes: 0,
            share: Arc::clone(share),
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `more` bytes if they are free.
    #[must_use]
    pub fn try_grow(&mut self, more: usize) -> bool {
        let taken = self.share.take(more);
        if taken {
            self.bytes += more;
        }
        taken
    }

    /// Waits for `more` bytes. Returns false if they are not free in time, or never can be.
    pub async fn grow(&mut self, more: usize) -> bool {
        let budget = Arc::clone(&self.share.budget);
        let (mut wait, mut closed_others) = (None, false);
        loop {
            // Created before the attempt, so that a release in between still wakes it.
            let released = budget.released.notified();
            if self.try_grow(more) {
                return true;
            }
            if !self.share.can_ever_take(self.bytes.saturating_add(more)) {
                return false;
            }
            let (check, deadline) = wait.get_or_insert_with(|| {
                let now = Instant::now();
                (now + budget.timeout / CLOSE_FRACTION, now + budget.timeout)
            });
            if timeout_at(*check, released).await.is_ok() {
                continue;
            }
            let now = Instant::now();
            if self.share.close_unread(more) && !closed_others {
                (*deadline, closed_others) = (now + budget.timeout, true);
            } else if now >= *deadline {
                return false;
            }
            *check = (now + budget.timeout / CLOSE_FRACTION).min(*deadline);
        }
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        drop(self.split_off(bytes));
    }

    /// Splits off all but `bytes`.
    pub fn split_off(&mut self, bytes: usize) -> MemoryCharge {
        let rest = self.bytes.saturating_sub(bytes);
        self.bytes -= rest;
        MemoryCharge {
            bytes: rest,
            share: Arc::clone(&self.share),
        }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.share.release(self.bytes);
        }
    }
}

/// Bytes that hold their memory until the last reference is dropped.
struct ChargedBytes {
    bytes: Vec<u8>,
    _charge: MemoryCharge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Makes `bytes` hold their part of `charge`. The rest is released.
#[must_use]
pub fn charged_bytes(bytes: Vec<u8>, charge: Option<MemoryCharge>) -> Bytes {
    match charge {
        Some(mut charge) if !bytes.is_empty() => {
            charge.shrink_to(bytes.capacity());
            Bytes::from_owner(ChargedBytes {
                bytes,
                _charge: charge,
            })
        }
        _ => Bytes::from(bytes),
    }
}
