//! `capabilityRoots/discoverV1`: the files of plugins and skills in directories that a client names.

use std::sync::Arc;

use outpost_protocol::{
    DiscoverRootsParams, DiscoverRootsResult, DiscoveredRoot, RootParams, RpcError, code,
};

use super::{
    reader::Reader,
    search::{FoundFiles, Search},
    send,
};
use crate::{
    connection::Reply,
    dialects::fs::{FileAccess, FileService, FileUse, ResultMemory},
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
    let read = read_roots(&files, params.roots, &reply).await;
    if let Some(((roots, memory), reply)) = reply.accept(read) {
        send(&files, reply, DiscoverRootsResult { roots }, memory).await;
    }
}

/// The bytes of files that were read, and their memory.
type ReadFiles = (usize, Vec<ResultMemory>);

async fn read_roots(
    files: &FileService,
    roots: Vec<RootParams>,
    reply: &Reply,
) -> Result<(Vec<DiscoveredRoot>, ReadFiles), RpcError> {
    let mut discovered = Vec::new();
    let mut read = (0, Vec::new());
    for root in roots {
        discovered.push(discover_root(files, root, reply, &mut read).await?);
    }
    Ok((discovered, read))
}

/// Reads the files of a root. Fails if there is no memory for them.
async fn discover_root(
    files: &FileService,
    root: RootParams,
    reply: &Reply,
    (bytes, memory): &mut ReadFiles,
) -> Result<DiscoveredRoot, RpcError> {
    let path = root.path.clone();
    let access = FileAccess::to(&path, root.sandbox, FileUse::Read);
    let share = files.connection().memory.clone();
    let earlier = *bytes;
    let read = files.execute(access, move |executor| {
        let reader = Reader::new(&executor, share);
        let mut search = Search::new(&reader, earlier);
        let found = search.read_root(path.as_path());
        let (warnings, bytes) = (search.warnings, search.bytes);
        Ok((found, warnings, bytes, reader.finish()?))
    });
    let (found, warnings) = match read.await {
        Ok(((found, warnings, all, kept), _)) => {
            *bytes = all;
            memory.push(kept);
            (found, warnings)
        }
        Err(error) if error.code == code::OVERLOADED => return Err(error),
        Err(error) => {
            reply.record_forbidden(&error);
            (Err(error.message), Vec::new())
        }
    };
    let (found, error) = match found {
        Ok(found) => (found, None),
        Err(error) => (FoundFiles::default(), Some(error)),
    };
    Ok(DiscoveredRoot {
        id: root.id,
        path: root.path,
        plugin: found.plugin,
        skills: found.skills,
        namespace_manifests: found.manifests,
        warnings,
        error,
    })
}
