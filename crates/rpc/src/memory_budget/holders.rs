//! The connections that can be closed to free their memory.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Share;

/// All connections that can be closed, by the address of their share.
#[derive(Debug, Default)]
pub(super) struct Holders(Mutex<HashMap<usize, Holder>>);

#[derive(Clone, Debug)]
struct Holder {
    share: Weak<Share>,
    /// Closes the connection.
    close: CancellationToken,
}

impl Holders {
    pub(super) fn add(&self, share: &Arc<Share>, close: CancellationToken) {
        let key = Arc::as_ptr(share).addr();
        let share = Arc::downgrade(share);
        self.0.lock().insert(key, Holder { share, close });
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&self, share: *const Share) {
        self.0.lock().remove(&share.addr());
    }

    /// Closes connections whose peers have not read for `patience`, those that hold most first, until
    /// `needed` bytes will be free. Returns whether there was one.
    pub(super) fn close_unread(&self, needed: usize, patience: Duration) -> bool {
        // Copied, because the last reference to a share removes it from the map.
        let holders: Vec<_> = self.0.lock().values().cloned().collect();
        let held = |holder: &Holder| {
            let share = holder.share.upgrade()?;
            let held = share.held.lock().counted;
            let is_unread = held > 0 && share.writes.is_blocked(patience);
            is_unread.then_some(held)
        };
        let mut unread: Vec<_> = (holders.into_iter())
            .filter(|holder| !holder.close.is_cancelled())
            .filter_map(|holder| Some((held(&holder)?, holder.close)))
            .collect();
        unread.sort_unstable_by_key(|(held, _)| Reverse(*held));
        let mut freed = 0;
        for (held, close) in &unread {
            close.cancel();
            freed += held;
            if freed >= needed {
                break;
            }
        }
        !unread.is_empty()
    }
}
