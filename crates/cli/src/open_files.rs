//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises our own soft limit to the hard one, since a process takes several
/// descriptors. Gives back what it was (soft, hard): children get that, because
/// programs that use `select` or close every possible descriptor rely on it.
pub(crate) fn raise() -> Option<(u64, u64)> {
    let before = getrlimit(Resource::Nofile);
    let (Some(soft), Some(hard)) = (before.current, before.maximum) else {
        return None;
    };
    if soft < hard {
        let raised = Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, soft, "failed to raise the limit on open files");
            return None;
        }
    }
    Some((soft, hard))
}
