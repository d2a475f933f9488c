//! The wire protocol.
//!
//! Outpost speaks a dialect of JSON-RPC. This crate defines its messages. It does no I/O and keeps no
//! state.
//!
//! - **Incoming**: [`Incoming::parse`] parses the envelope of one message and rejects malformed ones
//!   ([`Malformed`]). The params stay raw until the handler calls [`parse_params`].
//! - **Outgoing**: [`encode_response`], [`encode_error`] and [`encode_notification`] append one
//!   message to a buffer. [`OutputFrame`] is a faster encoder for `process/output`, which carries most
//!   of the bytes.
//! - **Clients**: [`encode_request`] appends a request, and [`FromServer::parse`] parses messages of a
//!   server. [`ReceivedInitializeResult`] and [`ReceivedExited`] accept older servers, which send fewer members.
//! - **Methods and errors**: [`Method`] is the table of methods, [`code`] the table of error codes.
//!   Each method has its own types of params and result. Types that other crates share are defined
//!   in `outpost-types` and re-exported.
//! - **Schema**: [`schema`] generates JSON Schema from the types.
//! - **Paths**: [`PathUri`] is the form of paths on the wire.
//!
//! The types define the syntax. Semantic rules, such as a non-empty `argv` or the length of an id, are
//! checked by the engine and the server.

pub mod base64;
pub mod code;
pub mod schema;

mod app;
mod config;
mod envelope;
mod environment;
mod error;
mod from_server;
mod fs;
mod http;
mod initialize;
mod malformed;
mod method;
mod native_path;
mod no_memory;
mod outgoing;
mod output_frame;
mod params;
mod process;
mod request_id;
mod server_capabilities;
mod session;
mod setting;
mod trace;
mod vet;

pub use app::{
    CommandOutput, CommandParams, CommandResizeParams, CommandResult, CommandTerminateParams,
    CommandWriteParams, KillParams, OutputDeltaEncoder, ResizePtyParams, SandboxPolicy,
    SpawnExited, SpawnOutput, SpawnParams, V0ExecParams, V0ExecResult, V0Exited, V0Output,
    V0TerminateParams, V0TerminateResult, V0WriteParams, V0WriteResult, WriteStdinParams,
    names_argv,
};
pub use base64::{Base64Bytes, Base64Text, InvalidBase64};
pub use config::{ConfigLayer, ConfigOrigin, ConfigReadParams, ConfigReadResult, ConfigSource};
pub use envelope::Incoming;
pub use environment::{EnvironmentStatus, HostInfo, StatusResult};
pub use error::{ErrorData, RpcError};
pub use from_server::FromServer;
pub use fs::{
    FileRequest, FileRequestError, FileResult, FsCanonicalizeParams, FsCanonicalizeResult,
    FsCloseParams, FsCommitParams, FsCopyParams, FsCreateDirectoryParams, FsCreateStreamParams,
    FsGetMetadataParams, FsOpenParams, FsOpenResult, FsPath, FsReadBlockParams, FsReadBlockResult,
    FsReadDirectoryParams, FsReadDirectoryResult, FsReadFileParams, FsReadFileResult,
    FsRemoveParams, FsWalkParams, FsWriteBlockParams, FsWriteFileParams, ReadFileAnswer,
    encode_read_block, encode_write_block,
};
pub use http::{
    BodyFrame, HttpAckParams, HttpBodyDelta, HttpCancelParams, HttpHeader, HttpHeaderParams,
    HttpRequestParams, HttpRequestResult, RedirectPolicy,
};
pub use initialize::{
    ClientCapabilities, ClientInfo, DetachedTtl, InitializeParams, InitializeResult,
    PROTOCOL_VERSION, ReceivedInitializeResult, ServerInfo, has_client_info,
};
pub use malformed::{MAX_JSON_VALUES, MAX_MESSAGE_BYTES, Malformed, MalformedKind};
pub use method::{
    COMMAND_EXITED, COMMAND_OUTPUT_DELTA, Family, HTTP_ACK, HTTP_BODY_DELTA, HTTP_CANCEL,
    INITIALIZED, Lane, Method, NOTIFICATIONS, PROCESS_ACK, PROCESS_CLOSED, PROCESS_EXITED,
    PROCESS_OUTPUT, PROCESS_OUTPUT_DELTA, family_of_name,
};
pub use native_path::NativePath;
pub use no_memory::NoMemory;
pub use outgoing::{encode_error, encode_notification, encode_request, encode_response};
pub use outpost_types::sandbox::{Confinement, SandboxParams, SandboxSupport, SandboxType};
pub use outpost_types::{
    Delivery, DirectoryEntry, EntryKind, EnvPolicy, EnvironmentCapabilities, EnvironmentInfo,
    ErrorKind, FileErrorKind, FileMetadata, FileOp, FileReply, Inherit, PathUri, PathUriError,
    ProcessEntry, ProcessState, Shell, Signal, StartParams, Stream, Symlinks, TerminalSize,
    TreeKind, UnexpectedReply, WalkEntry, WalkError, WalkOptions, WalkResult, WriteStatus,
};
pub use output_frame::OutputFrame;
pub use params::{Empty, InvalidParams, parse_params};
pub use process::{
    AckParams, ListResult, ProcessClosed, ProcessExited, ProcessOutput, ReadChunk, ReadParams,
    ReadResult, ReceivedExited, ResizeParams, SignalParams, StartResult, TerminateParams,
    TerminateResult, WriteParams, WriteResult,
};
pub use request_id::RequestId;
pub use server_capabilities::ServerCapabilities;
pub use session::{SessionCloseParams, SessionEntry, SessionListResult};
pub use setting::Setting;
pub use trace::TraceContext;
