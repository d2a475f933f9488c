//! The files of a server.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use outpost_protocol::{
    Empty, FsCanonicalizeParams, FsCanonicalizeResult, FsCopyParams, FsCreateDirectoryParams,
    FsCreateStreamParams, FsGetMetadataParams, FsGetMetadataResult, FsReadDirectoryParams,
    FsReadDirectoryResult, FsReadFileParams, FsReadFileResult, FsRemoveParams, FsWalkParams,
    FsWalkResult, FsWriteFileParams, Method, PathUri, SandboxParams,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{draft::RemoteDraft, open_file::RemoteFile, place::Guard, reins::announced};
use crate::files::{Cabinet, Draft, FileErrorKind, Opened, Trouble, Working};

/// Passes everything on to the server.
pub(super) struct RemoteCabinet {
    /// Keeps the connection as long as somebody has its files.
    guard: Arc<Guard>,
}

impl RemoteCabinet {
    pub(super) fn new(guard: Arc<Guard>) -> Self {
        RemoteCabinet { guard }
    }

    /// Asks something that may be asked twice.
    fn again<P, R>(&self, method: Method, params: P) -> Working<R>
    where
        P: Serialize + Send + Sync + 'static,
        R: DeserializeOwned + Send + 'static,
    {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move { Ok(guard.core.again(method, &params).await?) })
    }

    /// Asks for something that isn't asked for twice.
    fn once<P>(&self, method: Method, params: P) -> Working<()>
    where
        P: Serialize + Send + Sync + 'static,
    {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            let Empty {} = guard.core.once(method, &params).await?;
            Ok(())
        })
    }
}

impl Cabinet for RemoteCabinet {
    fn base(&self) -> Working<PathBuf> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move { Ok(guard.core.base().await?) })
    }

    fn read(&self, params: FsReadFileParams) -> Working<FsReadFileResult<Bytes>> {
        self.again(Method::FsReadFile, params)
    }

    fn write(&self, params: FsWriteFileParams) -> Working<()> {
        self.once(Method::FsWriteFile, params)
    }

    fn create_directory(&self, params: FsCreateDirectoryParams) -> Working<()> {
        self.once(Method::FsCreateDirectory, params)
    }

    fn metadata(&self, params: FsGetMetadataParams) -> Working<FsGetMetadataResult> {
        self.again(Method::FsGetMetadata, params)
    }

    fn canonicalize(&self, params: FsCanonicalizeParams) -> Working<FsCanonicalizeResult> {
        self.again(Method::FsCanonicalize, params)
    }

    fn read_directory(&self, params: FsReadDirectoryParams) -> Working<FsReadDirectoryResult> {
        let listing = self.again(Method::FsReadDirectory, params);
        Box::pin(async move {
            let listed: FsReadDirectoryResult = listing.await?;
            let names = listed.entries.iter().map(|entry| &*entry.file_name);
            match names.into_iter().find(|name| !is_name(name)) {
                Some(name) => Err(Trouble::new(
                    FileErrorKind::Failed,
                    format!("the server lists {name:?}, which is no name of a file"),
                )),
                None => Ok(listed),
            }
        })
    }

    fn walk(&self, params: FsWalkParams) -> Working<FsWalkResult> {
        self.again(Method::FsWalk, params)
    }

    fn remove(&self, params: FsRemoveParams) -> Working<()> {
        self.once(Method::FsRemove, params)
    }

    fn copy(&self, params: FsCopyParams) -> Working<()> {
        self.once(Method::FsCopy, params)
    }

    fn open(&self, path: PathUri, sandbox: Option<SandboxParams>) -> Working<Opened> {
        let guard = Arc::clone(&self.guard);
        Box::pin(RemoteFile::open(guard, path, sandbox))
    }

    fn create(&self, params: FsCreateStreamParams) -> Working<Arc<dyn Draft>> {
        let guard = Arc::clone(&self.guard);
        Box::pin(async move {
            announced(guard.core.capabilities().fs_write_stream, "fsWriteStream")?;
            let draft = RemoteDraft::create(guard, params).await?;
            Ok(Arc::new(draft) as Arc<dyn Draft>)
        })
    }
}

/// Whether something can be the name of an entry. Whoever copies a directory joins
/// the names to a path of its own, and a server must not choose what is written
/// outside of that.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}
