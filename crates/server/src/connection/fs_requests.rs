//! Dispatch of the `fs/*` requests.

use outpost_protocol::{FileRequest, FileRequestError, FsCloseParams, FsPath, Method, RpcError};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Reply,
    dispatch::Dispatch,
    params::{parsed, truncated},
};
use crate::dialects::fs::{self, FileService, ReservationId, Subject};

impl Dispatch {
    pub(super) async fn serve_fs(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method {
            Method::FsReadFile => self.in_order(params, reply, fs::read_file).await,
            Method::FsWriteFile => self.in_order(params, reply, fs::write_file).await,
            Method::FsOpen => self.open_handle(params, reply, fs::open).await,
            Method::FsReadBlock => self.in_order(params, reply, fs::read_block).await,
            Method::FsCreateStream => self.open_handle(params, reply, fs::create_stream).await,
            Method::FsWriteBlock => self.in_order(params, reply, fs::write_block).await,
            Method::FsCommit => self.in_order(params, reply, fs::commit).await,
            Method::FsClose => {
                if let Some((params, reply)) = parsed::<FsCloseParams>(params, reply) {
                    reply.send(Ok(fs::close(&self.file_service, &params)));
                }
            }
            _ => self.serve_file_op(method, reply, params).await,
        }
    }

    /// Serves a method that is a file operation, after earlier requests about the same path.
    async fn serve_file_op(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        let error = match FileRequest::parse(method, params) {
            Some(Ok(request)) => {
                let path = request
                    .op
                    .used_paths()
                    .last()
                    .map(|used| used.path.to_owned());
                let subject = Subject::Path(path.unwrap_or_default());
                let job = fs::perform(self.file_service.clone(), request, reply);
                return self.file_service.in_order(subject, job).await;
            }
            Some(Err(FileRequestError::Params(error))) => {
                let text = truncated(&error.to_string());
                RpcError::invalid_params(format!("invalid params: {text}"))
            }
            Some(Err(FileRequestError::Path(error))) => {
                RpcError::invalid_request(error.to_string())
            }
            None => RpcError::method_not_found(method.name()),
        };
        reply.send::<()>(Err(error));
    }

    /// Runs a request after earlier ones about the same path or handle.
    async fn in_order<P: DeserializeOwned + HasSubject, J: Future<Output = ()> + Send + 'static>(
        &self,
        params: Option<&RawValue>,
        reply: Reply,
        job: fn(FileService, P, Reply) -> J,
    ) {
        if let Some((params, reply)) = parsed::<P>(params, reply) {
            let subject = params.subject();
            let job = job(self.file_service.clone(), params, reply);
            self.file_service.in_order(subject, job).await;
        }
    }

    /// Runs a request that opens a handle. Reserves its id first, in the order of the requests.
    async fn open_handle<
        P: DeserializeOwned + HasHandle,
        J: Future<Output = ()> + Send + 'static,
    >(
        &self,
        params: Option<&RawValue>,
        reply: Reply,
        job: fn(FileService, ReservationId, P, Reply) -> J,
    ) {
        let Some((params, reply)) = parsed::<P>(params, reply) else {
            return;
        };
        let id = params.handle_id().to_owned();
        match fs::check_handle(&id).and_then(|()| self.file_service.reserve(&id)) {
            Err(error) => reply.send::<()>(Err(error)),
            Ok(slot) => {
                let job = job(self.file_service.clone(), slot, params, reply);
                self.file_service.in_order(Subject::Handle(id), job).await;
            }
        }
    }
}

/// Params of a request that is ordered by its handle or path.
trait HasSubject {
    fn subject(&self) -> Subject;
}

/// Params with a handle id.
trait HasHandle {
    fn handle_id(&self) -> &str;
}

macro_rules! ordered_by_path {
    ($($params:ident),*) => {
        $(impl HasSubject for outpost_protocol::$params {
            fn subject(&self) -> Subject {
                Subject::Path(match &self.path {
                    FsPath::Here(uri) => uri.as_path().to_owned(),
                    // The request will be rejected.
                    FsPath::Elsewhere(_) => Default::default(),
                })
            }
        })*
    };
}

macro_rules! ordered_by_handle {
    ($($params:ident),*) => {
        $(impl HasSubject for outpost_protocol::$params {
            fn subject(&self) -> Subject {
                Subject::Handle(self.handle_id.clone())
            }
        })*
    };
}

macro_rules! opens_handle {
    ($($params:ident),*) => {
        $(impl HasHandle for outpost_protocol::$params {
            fn handle_id(&self) -> &str {
                &self.handle_id
            }
        })*
    };
}

ordered_by_path!(FsReadFileParams, FsWriteFileParams);
ordered_by_handle!(FsReadBlockParams, FsWriteBlockParams, FsCommitParams);
opens_handle!(FsOpenParams, FsCreateStreamParams);
