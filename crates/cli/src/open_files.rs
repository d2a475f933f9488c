//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit, since each process needs several descriptors. Returns
/// the original limits (soft, hard) for children, because programs that use `select` or close every
/// possible descriptor rely on them.
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
