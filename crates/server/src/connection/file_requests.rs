//! The methods about files: how each request is parsed and ordered.

use std::{os::unix::ffi::OsStrExt as _, path::Path, sync::Arc};

use outpost_protocol::{
    AbsolutePath, AccessScope, Empty, FileRequest, FsCloseParams, FsCommitParams,
    FsCreateStreamParams, FsOpenMode, FsOpenParams, FsOpenResult, FsReadBlockParams,
    FsReadFileParams, FsWriteBlockParams, FsWriteFileParams, Method, PathUri, RpcError,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Reply, dispatch::Dispatch, unparsed_request::Request};
use crate::dialects::fs::{self, FileService, Handle, Subject};

impl Dispatch {
    /// Serves `fs/*`.
    pub(super) async fn serve_fs(&self, request: Request<'_>) -> Option<()> {
        match request.method {
            Method::FsReadFile => {
                type Native = FsReadFileParams<AbsolutePath>;
                let path = |params: &FsReadFileParams| params.path.clone();
                self.on_path::<_, Native, _>(request, path, fs::read_file)
                    .await
            }
            Method::FsWriteFile => {
                type Native = FsWriteFileParams<AbsolutePath>;
                let path = |params: &FsWriteFileParams| params.path.clone();
                let job =
                    |files, params, reply: Reply| reply.send_outcome(fs::write_file(files, params));
                self.on_path::<_, Native, _>(request, path, job).await
            }
            Method::FsReadBlock => {
                let subject = |params: &FsReadBlockParams| Subject::handle(&params.handle_id);
                self.in_order(request, subject, fs::read_block).await
            }
            Method::FsWriteBlock => {
                let subject = |params: &FsWriteBlockParams| Subject::handle(&params.handle_id);
                let job = |files, params, reply: Reply| {
                    reply.send_outcome(fs::write_block(files, params))
                };
                self.in_order(request, subject, job).await
            }
            Method::FsCommit => {
                let subject = |params: &FsCommitParams| Subject::handle(&params.handle_id);
                let job =
                    |files, params, reply: Reply| reply.send_outcome(fs::commit(files, params));
                self.in_order(request, subject, job).await
            }
            Method::FsOpen => {
                let (params, reply) = request.parse::<FsOpenParams>()?;
                let allowed = match params.mode {
                    FsOpenMode::Read => Ok(()),
                    FsOpenMode::Replace => {
                        self.connection.principal.require(AccessScope::FilesWrite)
                    }
                };
                let ((), reply) = reply.accept(allowed)?;
                let handle_id = params.handle_id.clone();
                let opening = fs::open(Arc::clone(&self.files), params);
                let result = FsOpenResult {
                    handle_id: handle_id.clone(),
                };
                self.open_handle(handle_id, opening, result, reply).await
            }
            Method::FsCreateStream => {
                let (params, reply) = request.parse::<FsCreateStreamParams>()?;
                let handle_id = params.handle_id.clone();
                let opening = fs::create_stream(Arc::clone(&self.files), params);
                self.open_handle(handle_id, opening, Empty {}, reply).await
            }
            Method::FsWatch | Method::FsUnwatch | Method::FsWatchMissing => {
                self.serve_watch(request)
            }
            Method::FsClose => request.respond_now(|params: FsCloseParams| {
                self.files.close(&params.handle_id);
                Ok(Empty {})
            }),
            _ => {
                let parsed = parse_file_request(&request);
                let (parsed, reply) = request.reply.accept(parsed)?;
                let path = parsed
                    .op
                    .used_paths()
                    .last()
                    .map(|used| used.path.to_owned());
                let subject = Subject::Path(path.unwrap_or_default());
                let job = fs::perform(Arc::clone(&self.files), parsed, reply);
                self.files.lanes.run(subject, Box::pin(job)).await;
                Some(())
            }
        }
    }

    /// Runs a request after earlier requests about the same path. Clients of the app-server send params
    /// of type `N`, with a native path.
    async fn on_path<P, N, J>(
        &self,
        request: Request<'_>,
        path: fn(&P) -> PathUri,
        job: impl FnOnce(Arc<FileService>, P, Reply) -> J,
    ) -> Option<()>
    where
        P: DeserializeOwned + From<N>,
        N: DeserializeOwned,
        J: Future<Output = ()> + Send + 'static,
    {
        let (params, reply) = match request.is_app {
            true => {
                let (native, reply) = request.parse::<N>()?;
                (P::from(native), reply)
            }
            false => request.parse::<P>()?,
        };
        let path = path(&params);
        let ((), reply) = reply.accept(check_path(path.as_path()))?;
        let job = job(Arc::clone(&self.files), params, reply);
        let subject = Subject::path(&path);
        self.files.lanes.run(subject, Box::pin(job)).await;
        Some(())
    }

    /// Runs a request after earlier requests about the same handle.
    async fn in_order<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &self,
        request: Request<'_>,
        subject: fn(&P) -> Subject,
        job: impl FnOnce(Arc<FileService>, P, Reply) -> J,
    ) -> Option<()> {
        let (params, reply) = request.parse::<P>()?;
        let subject = subject(&params);
        let job = job(Arc::clone(&self.files), params, reply);
        self.files.lanes.run(subject, Box::pin(job)).await;
        Some(())
    }

    /// Runs a request that opens a handle. Reserves its id first, in the order of the
    /// requests.
    async fn open_handle<R: Serialize + Send + 'static>(
        &self,
        id: String,
        opening: impl Future<Output = Result<Handle, RpcError>> + Send + 'static,
        result: R,
        reply: Reply,
    ) -> Option<()> {
        // On its own line, so that the handles are not locked while an error is sent.
        let reserved = self.connection.handles.lock().reserve(&id);
        let (slot, reply) = reply.accept(reserved)?;
        let subject = Subject::handle(&id);
        let files = Arc::clone(&self.files);
        let job = async move {
            let opened = files.fill(&id, slot, opening.await);
            reply.send(opened.map(|()| result));
        };
        self.files.lanes.run(subject, Box::pin(job)).await;
        Some(())
    }
}

/// Parses a file operation, with native paths if a client of the app-server sends it.
fn parse_file_request(request: &Request<'_>) -> Result<FileRequest, RpcError> {
    request.check_presence()?;
    let (method, params) = (request.method, request.params);
    let parsed = match request.is_app {
        true => FileRequest::parse_native(method, params),
        false => FileRequest::parse(method, params),
    };
    let parsed = parsed.ok_or_else(|| RpcError::method_not_found(method.name()))?;
    let parsed = parsed.map_err(|error| request.invalid(&error))?;
    for used in parsed.op.used_paths() {
        check_path(used.path)?;
    }
    Ok(parsed)
}

/// Rejects a path that no file can have. Only a native one can be such a path.
fn check_path(path: &Path) -> Result<(), RpcError> {
    if path.as_os_str().as_bytes().contains(&0) {
        let message = "file name contained an unexpected NUL byte";
        return Err(RpcError::invalid_request(message));
    }
    Ok(())
}
