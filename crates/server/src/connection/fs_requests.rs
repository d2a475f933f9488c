//! Requests about files.

use std::path::PathBuf;

use outpost_protocol::{
    FsCloseParams, FsCommitParams, FsCreateStreamParams, FsOpenParams, FsPath, FsReadBlockParams,
    FsWriteBlockParams, Method, RpcError,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Reply, dispatch::Dispatch, params::parsed};
use crate::{
    convert,
    faces::fs::{self, Desk, Place, Subject},
};

impl Dispatch {
    pub(super) async fn serve_fs(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method {
            Method::FsReadFile => self.about_path(params, reply, fs::read_file).await,
            Method::FsWriteFile => self.about_path(params, reply, fs::write_file).await,
            Method::FsCreateDirectory => {
                self.about_path(params, reply, fs::create_directory).await;
            }
            Method::FsGetMetadata => self.about_path(params, reply, fs::get_metadata).await,
            Method::FsCanonicalize => self.about_path(params, reply, fs::canonicalize).await,
            Method::FsReadDirectory => self.about_path(params, reply, fs::read_directory).await,
            Method::FsWalk => self.about_path(params, reply, fs::walk).await,
            Method::FsRemove => self.about_path(params, reply, fs::remove).await,
            Method::FsCopy => self.about_path(params, reply, fs::copy).await,
            Method::FsOpen => {
                let id = |params: &FsOpenParams| params.handle_id.clone();
                self.opening(params, reply, id, fs::open).await;
            }
            Method::FsCreateStream => {
                let id = |params: &FsCreateStreamParams| params.handle_id.clone();
                self.opening(params, reply, id, fs::create_stream).await;
            }
            Method::FsReadBlock => {
                let id = |params: &FsReadBlockParams| params.handle_id.clone();
                self.about_handle(params, reply, id, fs::read_block).await;
            }
            Method::FsWriteBlock => {
                let id = |params: &FsWriteBlockParams| params.handle_id.clone();
                self.about_handle(params, reply, id, fs::write_block).await;
            }
            Method::FsCommit => {
                let id = |params: &FsCommitParams| params.handle_id.clone();
                self.about_handle(params, reply, id, fs::commit).await;
            }
            Method::FsClose => {
                if let Some((params, reply)) = parsed::<FsCloseParams>(params, reply) {
                    reply.send(Ok(fs::close(&self.desk, &params)));
                }
            }
            _ => reply.send::<()>(Err(RpcError::method_not_found(method.name()))),
        }
    }

    /// Runs a request behind those about the same path.
    async fn about_path<P: DeserializeOwned + About, J: Future<Output = ()> + Send + 'static>(
        &self,
        params: Option<&RawValue>,
        reply: Reply,
        job: fn(Desk, P, Reply) -> J,
    ) {
        if let Some((params, reply)) = parsed::<P>(params, reply) {
            let subject = Subject::Path(params.about());
            let job = job(self.desk.clone(), params, reply);
            self.desk.in_order(subject, job).await;
        }
    }

    /// Runs a request behind those about the same handle.
    async fn about_handle<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &self,
        params: Option<&RawValue>,
        reply: Reply,
        id: fn(&P) -> String,
        job: fn(Desk, P, Reply) -> J,
    ) {
        if let Some((params, reply)) = parsed::<P>(params, reply) {
            let subject = Subject::Handle(id(&params));
            let job = job(self.desk.clone(), params, reply);
            self.desk.in_order(subject, job).await;
        }
    }

    /// The same, where the handle is a new one. Its name is taken here, in the
    /// order of the wire.
    async fn opening<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &self,
        params: Option<&RawValue>,
        reply: Reply,
        id: fn(&P) -> String,
        job: fn(Desk, Place, P, Reply) -> J,
    ) {
        let Some((params, reply)) = parsed::<P>(params, reply) else {
            return;
        };
        let id = id(&params);
        match convert::check_handle(&id).and_then(|()| self.desk.reserve(&id)) {
            Err(refusal) => reply.send::<()>(Err(refusal)),
            Ok(place) => {
                let job = job(self.desk.clone(), place, params, reply);
                self.desk.in_order(Subject::Handle(id), job).await;
            }
        }
    }
}

/// What requests about a path wait behind each other for.
trait About {
    fn path(&self) -> &FsPath;

    fn about(&self) -> PathBuf {
        match self.path() {
            FsPath::Here(uri) => uri.as_path().to_owned(),
            // Nothing becomes of it.
            FsPath::Elsewhere(_) => PathBuf::new(),
        }
    }
}

macro_rules! about {
    ($($params:ident . $path:ident),* $(,)?) => {
        $(impl About for outpost_protocol::$params {
            fn path(&self) -> &FsPath {
                &self.$path
            }
        })*
    };
}

about! {
    FsReadFileParams.path,
    FsWriteFileParams.path,
    FsCreateDirectoryParams.path,
    FsGetMetadataParams.path,
    FsCanonicalizeParams.path,
    FsReadDirectoryParams.path,
    FsWalkParams.path,
    FsRemoveParams.path,
    FsCopyParams.destination_path,
}
