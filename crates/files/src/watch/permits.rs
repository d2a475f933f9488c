//! Permits for what watchers take from the kernel, which limits it per user.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A permit, until it is dropped.
pub type WatchPermit = Box<dyn Any + Send>;

/// Grants what a watcher takes from the kernel, so that several watchers share it.
pub trait WatchPermits: Send + Sync {
    /// Returns a permit for an inotify instance, if the watcher may have one.
    fn instance(&self) -> Option<WatchPermit>;

    /// Returns a permit for one more watched file or directory, if the watcher may have one.
    fn directory(&self) -> Option<WatchPermit>;
}

/// The permits of a watcher; none are needed without a source.
#[derive(Clone)]
pub(super) struct PermitSource(pub(super) Option<Arc<dyn WatchPermits>>);

/// A permit that is absent if none is needed.
pub(super) struct Permit {
    _permit: Option<WatchPermit>,
}

impl PermitSource {
    pub(super) fn instance(&self) -> Option<Permit> {
        self.acquire(|source| source.instance())
    }

    pub(super) fn directory(&self) -> Option<Permit> {
        self.acquire(|source| source.directory())
    }

    fn acquire(
        &self,
        acquire: impl FnOnce(&dyn WatchPermits) -> Option<WatchPermit>,
    ) -> Option<Permit> {
        let permit = match &self.0 {
            Some(source) => Some(acquire(&**source)?),
            None => None,
        };
        Some(Permit { _permit: permit })
    }
}

impl fmt::Debug for PermitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitSource")
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}
