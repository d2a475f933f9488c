//! What is on the wire.
//!
//! Outpost speaks a dialect of JSON-RPC. This crate holds its vocabulary and nothing else: it does no
//! I/O, knows no clock and keeps no state, so everything here can be tested as plain functions.
//!
//! - **Coming in**: [`Incoming::parse`] takes the bytes of one message, refuses what is malformed
//!   ([`Malformed`]) and tells the four shapes apart. `params` stay raw until the method that wants
//!   them calls [`parse_params`].
//! - **Going out**: [`encode_response`], [`encode_error`] and [`encode_notification`] append one
//!   message to a buffer. [`OutputFrame`] does the same for `process/output` by hand, because that is
//!   the message that carries all the bytes.
//! - **As a client**: [`encode_request`] appends a request, and [`FromServer::parse`] opens what comes
//!   back. [`Welcome`] and [`Ending`] are what is read of servers that say less than this one.
//! - **Words**: [`Method`] is the table of methods; [`code`] the table of error codes; the params and
//!   results of each method have a type of their own.
//! - **Written down**: [`schema`] describes all of it as JSON Schema, from the types themselves.
//! - **Paths**: [`PathUri`] is the only way a path gets onto or off the wire.
//!
//! Types only say what can be *written*. Rules about what is *sensible* (an empty `argv`, a zero
//! window size, an id that is too long) belong to the server, which knows the state they depend on.
//!
//! JSON never goes below this crate: the engine and what is under it get plain Rust values.

pub mod base64;
pub mod code;
pub mod schema;

mod app;
mod config;
mod env_policy;
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
mod path_uri;
mod process;
mod request_id;
mod sandbox;
mod server_capabilities;
mod session;
mod setting;
mod trace;
mod vet;
mod words;

pub use app::{
    CommandOutput, CommandParams, CommandResizeParams, CommandResult, CommandTerminateParams,
    CommandWriteParams, DeltaFrame, KillParams, NetworkAccess, ResizePtyParams, SandboxPolicy,
    SpawnExited, SpawnOutput, SpawnParams, V0ExecParams, V0ExecResult, V0Exited, V0Output,
    V0TerminateParams, V0TerminateResult, V0WriteParams, V0WriteResult, WriteStdinParams,
    names_argv,
};
pub use base64::{Base64Bytes, Base64Text, InvalidBase64};
pub use config::{ConfigLayer, ConfigOrigin, ConfigReadParams, ConfigReadResult, ConfigSource};
pub use env_policy::{EnvPolicy, Inherit};
pub use envelope::Incoming;
pub use environment::{
    EnvironmentCapabilities, EnvironmentInfo, EnvironmentStatus, ProcessTrees, SandboxLevel,
    SandboxSupport, Shell, StatusResult, Surroundings,
};
pub use error::RpcError;
pub use from_server::FromServer;
pub use fs::{
    FsCanonicalizeParams, FsCanonicalizeResult, FsCloseParams, FsCommitParams, FsCopyParams,
    FsCreateDirectoryParams, FsCreateStreamParams, FsDirectoryEntry, FsEntryKind,
    FsGetMetadataParams, FsGetMetadataResult, FsOpenParams, FsOpenResult, FsPath,
    FsReadBlockParams, FsReadBlockResult, FsReadDirectoryParams, FsReadDirectoryResult,
    FsReadFileParams, FsReadFileResult, FsRemoveParams, FsWalkEntry, FsWalkError, FsWalkOptions,
    FsWalkParams, FsWalkResult, FsWriteBlockParams, FsWriteFileParams, ReadFileAnswer,
    encode_read_block, encode_write_block,
};
pub use http::{
    BodyFrame, HttpAckParams, HttpBodyDelta, HttpCancelParams, HttpHeader, HttpHeaderParams,
    HttpRequestParams, HttpRequestResult, RedirectPolicy,
};
pub use initialize::{
    ClientCapabilities, ClientInfo, Delivery, DetachedTtl, InitializeParams, InitializeResult,
    PROTOCOL_VERSION, ServerInfo, Welcome, has_client_info,
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
pub use output_frame::OutputFrame;
pub use params::{Empty, InvalidParams, parse_params};
pub use path_uri::{PathUri, PathUriError};
pub use process::{
    AckParams, Ending, ListResult, ProcessClosed, ProcessEntry, ProcessExited, ProcessOutput,
    ProcessState, ReadChunk, ReadParams, ReadResult, ResizeParams, SandboxType, SignalName,
    SignalParams, Size, StartParams, StartResult, StreamName, TerminateParams, TerminateResult,
    WriteParams, WriteResult, WriteStatus,
};
pub use request_id::RequestId;
pub use sandbox::{
    FileSystemAccess, FileSystemEntry, FileSystemPath, FileSystemPermissions, MissingPathBehavior,
    Permissions, SandboxParams, SpecialPath,
};
pub use server_capabilities::ServerCapabilities;
pub use session::{SessionCloseParams, SessionEntry, SessionListResult};
pub use setting::Setting;
pub use trace::TraceContext;
