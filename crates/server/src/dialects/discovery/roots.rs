//! `capabilityRoots/discoverV1`: the files of plugins and skills in directories that a client names.

use std::sync::Arc;

use outpost_protocol::{
    DiscoverRootsParams, DiscoverRootsResult, DiscoveredRoot, RootParams, RpcError,
};

use super::{
    search::{FoundFiles, Search},
    send,
};
use crate::{
    connection::Reply,
    dialects::fs::{FileAccess, FileService, FileUse},
};

const MAX_ROOTS: usize = 128;

/// Reads the files of all roots. A root that fails has its error in the result.
pub(crate) async fn discover_roots(
    files: Arc<FileService>,
    params: DiscoverRootsParams,
    reply: Reply,
) {
    let allowed = match params.roots.len() <= MAX_ROOTS {
        true => Ok(()),
        false => Err(RpcError::invalid_request(format!(
            "capability root discovery accepts at most {MAX_ROOTS} roots"
        ))),
    };
    let Some(((), reply)) = reply.accept(allowed) else {
        return;
    };
    let mut roots = Vec::new();
    let mut bytes = 0;
    for root in params.roots {
        let (discovered, total) = discover_root(&files, root, bytes).await;
        roots.push(discovered);
        bytes = total;
    }
    send(&files, reply, DiscoverRootsResult { roots }, bytes).await;
}

/// Reads the files of a root. Returns the bytes of all files, with those of earlier roots.
async fn discover_root(
    files: &FileService,
    root: RootParams,
    bytes: usize,
) -> (DiscoveredRoot, usize) {
    let path = root.path.clone();
    let access = FileAccess::to(&path, root.sandbox, FileUse::Read);
    let read = files.execute(access, move |executor| {
        let mut search = Search::new(&executor, bytes);
        let found = search.read_root(path.as_path());
        Ok((found, search.warnings, search.bytes))
    });
    let (found, warnings, bytes) = match read.await {
        Ok((read, _)) => read,
        Err(error) => (Err(error.message), Vec::new(), bytes),
    };
    let (found, error) = match found {
        Ok(found) => (found, None),
        Err(error) => (FoundFiles::default(), Some(error)),
    };
    let discovered = DiscoveredRoot {
        id: root.id,
        path: root.path,
        plugin: found.plugin,
        skills: found.skills,
        namespace_manifests: found.manifests,
        warnings,
        error,
    };
    (discovered, bytes)
}
