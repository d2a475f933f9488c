//! `fs/createDirectory`, `fs/getMetadata`, `fs/canonicalize`, `fs/remove`,
//! `fs/copy`.

use outpost_files::{Clerk, Remove};
use outpost_protocol::{
    Empty, FsCanonicalizeParams, FsCanonicalizeResult, FsCopyParams, FsCreateDirectoryParams,
    FsGetMetadataParams, FsGetMetadataResult, FsRemoveParams, PathUri, RpcError,
};

use super::Desk;
use crate::{connection::Reply, convert};

pub(crate) async fn create_directory(desk: Desk, params: FsCreateDirectoryParams, reply: Reply) {
    let made = async {
        let path = convert::path(params.path)?;
        let links = convert::links(params.follow_symlinks);
        let make = move |files: Clerk| files.create_directory(&path, params.recursive, links);
        desk.run(params.sandbox.as_ref(), make).await
    };
    reply.send(made.await.map(|()| Empty {}));
}

pub(crate) async fn get_metadata(desk: Desk, params: FsGetMetadataParams, reply: Reply) {
    let found = async {
        let path = convert::path(params.path)?;
        let links = convert::links(params.follow_symlinks);
        let sandbox = params.sandbox.as_ref();
        let found = desk
            .look(sandbox, move |files| files.metadata(&path, links))
            .await?;
        Ok::<_, RpcError>(FsGetMetadataResult {
            is_directory: found.is_directory,
            is_file: found.is_file,
            is_symlink: found.is_symlink,
            size: found.size,
            created_at_ms: found.created_at_ms.unwrap_or(0),
            modified_at_ms: found.modified_at_ms,
        })
    };
    reply.send(found.await);
}

pub(crate) async fn canonicalize(desk: Desk, params: FsCanonicalizeParams, reply: Reply) {
    let found = async {
        let path = convert::path(params.path)?;
        let sandbox = params.sandbox.as_ref();
        let found = desk
            .look(sandbox, move |files| files.canonicalize(&path))
            .await?;
        Ok::<_, RpcError>(FsCanonicalizeResult {
            path: PathUri::from_path(&found),
        })
    };
    reply.send(found.await);
}

pub(crate) async fn remove(desk: Desk, params: FsRemoveParams, reply: Reply) {
    let removed = async {
        let path = convert::path(params.path)?;
        let how = Remove {
            recursive: params.recursive,
            force: params.force,
            links: convert::links(params.follow_symlinks),
        };
        let sandbox = params.sandbox.as_ref();
        desk.run(sandbox, move |files| files.remove(&path, how))
            .await
    };
    reply.send(removed.await.map(|()| Empty {}));
}

pub(crate) async fn copy(desk: Desk, params: FsCopyParams, reply: Reply) {
    let copied = async {
        let source = convert::path(params.source_path)?;
        let destination = convert::path(params.destination_path)?;
        let copy = move |files: Clerk| files.copy(&source, &destination, params.recursive);
        desk.run(params.sandbox.as_ref(), copy).await
    };
    reply.send(copied.await.map(|()| Empty {}));
}
