//! The types of each method and notification.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{
    AckParams, COMMAND_EXITED, COMMAND_OUTPUT_DELTA, CommandOutput, CommandParams,
    CommandResizeParams, CommandResult, CommandTerminateParams, CommandWriteParams,
    ConfigReadParams, ConfigReadResult, Empty, EnvironmentInfo, FileMetadata, FsCanonicalizeParams,
    FsCanonicalizeResult, FsCloseParams, FsCommitParams, FsCopyParams, FsCreateDirectoryParams,
    FsCreateStreamParams, FsGetMetadataParams, FsOpenParams, FsOpenResult, FsReadBlockParams,
    FsReadBlockResult, FsReadDirectoryParams, FsReadDirectoryResult, FsReadFileParams,
    FsReadFileResult, FsRemoveParams, FsWalkParams, FsWriteBlockParams, FsWriteFileParams,
    HTTP_ACK, HTTP_BODY_DELTA, HTTP_CANCEL, HttpAckParams, HttpBodyDelta, HttpCancelParams,
    HttpRequestParams, HttpRequestResult, INITIALIZED, InitializeParams, InitializeResult,
    KillParams, ListResult, Method, PROCESS_ACK, PROCESS_CLOSED, PROCESS_EXITED, PROCESS_OUTPUT,
    PROCESS_OUTPUT_DELTA, ProcessClosed, ProcessExited, ProcessOutput, ReadParams, ReadResult,
    ResizeParams, ResizePtyParams, SessionCloseParams, SessionListResult, SignalParams,
    SpawnExited, SpawnOutput, SpawnParams, StartParams, StartResult, StatusResult, TerminateParams,
    TerminateResult, V0ExecParams, V0ExecResult, V0Exited, V0Output, V0TerminateParams,
    V0TerminateResult, V0WriteParams, V0WriteResult, WalkResult, WriteParams, WriteResult,
    WriteStdinParams,
};

/// Generates the schema of a type.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// The types of a method.
pub(super) struct Request {
    /// The dialect, if the name has several meanings.
    pub(super) variant: Option<&'static str>,
    pub(super) params: Describe,
    pub(super) result: Describe,
}

/// One notification.
pub(super) struct Notification {
    pub(super) name: &'static str,
    /// The dialect, if the name has several meanings.
    pub(super) variant: Option<&'static str>,
    pub(super) sender: Sender,
    pub(super) params: Describe,
}

/// The sender of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
}

/// The meanings of a method, usually one.
pub(super) fn requests(method: Method) -> Vec<Request> {
    match method {
        Method::Initialize => vec![request::<InitializeParams, InitializeResult>()],
        Method::ProcessStart => vec![request::<StartParams, StartResult>()],
        Method::ProcessRead => vec![request::<ReadParams, ReadResult>()],
        Method::ProcessWrite => vec![request::<WriteParams, WriteResult>()],
        Method::ProcessSignal => vec![request::<SignalParams, Empty>()],
        Method::ProcessTerminate => vec![request::<TerminateParams, TerminateResult>()],
        Method::ProcessResize => vec![request::<ResizeParams, Empty>()],
        Method::ProcessList => vec![request::<Empty, ListResult>()],
        Method::ProcessSpawn => vec![request::<SpawnParams, Empty>()],
        Method::ProcessWriteStdin => vec![request::<WriteStdinParams, Empty>()],
        Method::ProcessResizePty => vec![request::<ResizePtyParams, Empty>()],
        Method::ProcessKill => vec![request::<KillParams, Empty>()],
        Method::CommandExec => vec![
            request::<CommandParams, CommandResult>(),
            request::<V0ExecParams, V0ExecResult>().called("v0"),
        ],
        Method::CommandExecWrite => vec![
            request::<CommandWriteParams, Empty>(),
            request::<V0WriteParams, V0WriteResult>().called("v0"),
        ],
        Method::CommandExecResize => vec![request::<CommandResizeParams, Empty>()],
        Method::CommandExecTerminate => vec![
            request::<CommandTerminateParams, Empty>(),
            request::<V0TerminateParams, V0TerminateResult>().called("v0"),
        ],
        Method::EnvironmentInfo => vec![request::<Empty, EnvironmentInfo>()],
        Method::EnvironmentStatus => vec![request::<Empty, StatusResult>()],
        Method::SessionClose => vec![request::<SessionCloseParams, Empty>()],
        Method::SessionList => vec![request::<Empty, SessionListResult>()],
        Method::ConfigRead => vec![request::<ConfigReadParams, ConfigReadResult>()],
        Method::FsReadFile => vec![request::<FsReadFileParams, FsReadFileResult>()],
        Method::FsOpen => vec![request::<FsOpenParams, FsOpenResult>()],
        Method::FsReadBlock => vec![request::<FsReadBlockParams, FsReadBlockResult>()],
        Method::FsClose => vec![request::<FsCloseParams, Empty>()],
        Method::FsWriteFile => vec![request::<FsWriteFileParams, Empty>()],
        Method::FsCreateDirectory => vec![request::<FsCreateDirectoryParams, Empty>()],
        Method::FsGetMetadata => vec![request::<FsGetMetadataParams, FileMetadata>()],
        Method::FsCanonicalize => vec![request::<FsCanonicalizeParams, FsCanonicalizeResult>()],
        Method::FsReadDirectory => vec![request::<FsReadDirectoryParams, FsReadDirectoryResult>()],
        Method::FsWalk => vec![request::<FsWalkParams, WalkResult>()],
        Method::FsRemove => vec![request::<FsRemoveParams, Empty>()],
        Method::FsCopy => vec![request::<FsCopyParams, Empty>()],
        Method::FsCreateStream => vec![request::<FsCreateStreamParams, Empty>()],
        Method::FsWriteBlock => vec![request::<FsWriteBlockParams, Empty>()],
        Method::FsCommit => vec![request::<FsCommitParams, Empty>()],
        Method::HttpRequest => vec![request::<HttpRequestParams, HttpRequestResult>()],
    }
}

/// All notifications.
pub(super) fn notifications() -> Vec<Notification> {
    vec![
        notification::<Empty>(INITIALIZED, Sender::Client),
        notification::<AckParams>(PROCESS_ACK, Sender::Client),
        notification::<ProcessOutput<'static>>(PROCESS_OUTPUT, Sender::Server),
        notification::<ProcessExited>(PROCESS_EXITED, Sender::Server),
        notification::<ProcessClosed>(PROCESS_CLOSED, Sender::Server),
        notification::<SpawnOutput<'static>>(PROCESS_OUTPUT_DELTA, Sender::Server),
        notification::<SpawnExited>(PROCESS_EXITED, Sender::Server).called("spawn"),
        notification::<CommandOutput<'static>>(COMMAND_OUTPUT_DELTA, Sender::Server),
        notification::<V0Output<'static>>(COMMAND_OUTPUT_DELTA, Sender::Server).called("v0"),
        notification::<V0Exited>(COMMAND_EXITED, Sender::Server),
        notification::<HttpBodyDelta<'static>>(HTTP_BODY_DELTA, Sender::Server),
        notification::<HttpAckParams>(HTTP_ACK, Sender::Client),
        notification::<HttpCancelParams>(HTTP_CANCEL, Sender::Client),
    ]
}

impl Request {
    fn called(self, variant: &'static str) -> Self {
        Self {
            variant: Some(variant),
            ..self
        }
    }
}

impl Notification {
    fn called(self, variant: &'static str) -> Self {
        Self {
            variant: Some(variant),
            ..self
        }
    }
}

fn request<P: JsonSchema, R: JsonSchema>() -> Request {
    Request {
        variant: None,
        params: |types| types.subschema_for::<P>(),
        result: |types| types.subschema_for::<R>(),
    }
}

fn notification<P: JsonSchema>(name: &'static str, sender: Sender) -> Notification {
    Notification {
        name,
        variant: None,
        sender,
        params: |types| types.subschema_for::<P>(),
    }
}
