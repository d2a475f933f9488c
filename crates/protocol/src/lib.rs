//! The wire protocol.
//!
//! Outpost speaks a dialect of JSON-RPC. This crate defines its messages. It does no I/O and keeps no
//! state.
//!
//! - **Incoming**: [`Incoming::parse`] parses the envelope of one message and rejects malformed ones
//!   ([`Malformed`]). The params stay raw until the handler calls [`parse_params`]; their member names
//!   are collected, and [`PresentMembers::check`] rejects misspelt ones.
//! - **Outgoing**: [`encode_response`], [`encode_error`] and [`encode_notification`] append one
//!   message to a buffer. [`OutputEncoder`] is a faster encoder for `process/output`, which carries most
//!   of the bytes.
//! - **Clients**: [`encode_request`] appends a request, and [`FromServer::parse`] parses messages of a
//!   server. [`ReceivedInitializeResult`] and [`HostInfo`] accept older servers, which send
//!   fewer members.
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

mod app_server;
mod config;
mod discovery;
mod encoders;
mod envelope;
mod environment;
mod error;
mod fallible_alloc;
mod from_server;
mod fs;
mod http;
mod known_members;
mod malformed;
mod method;
mod native_files;
mod network;
mod outgoing;
mod params;
mod process;
mod request_id;
mod session;
mod v0;
mod vet;
mod watch;

pub use app_server::*;
pub use base64::{Base64Bytes, Base64Text, InvalidBase64};
pub use config::*;
pub use discovery::*;
pub use encoders::*;
pub use envelope::{Incoming, TraceContext};
pub use environment::*;
pub use error::{ErrorData, RpcError};
pub use fallible_alloc::NoMemory;
pub use from_server::FromServer;
pub use fs::*;
pub use http::*;
pub use known_members::PresentMembers;
pub use malformed::{MAX_HANDSHAKE_BYTES, MAX_JSON_VALUES, MAX_MESSAGE_BYTES, Malformed};
pub use method::*;
pub use native_files::AppMetadata;
pub use network::*;
pub use outgoing::{encode_error, encode_notification, encode_request, encode_response};
pub use outpost_types::file_op::*;
pub use outpost_types::sandbox::{SandboxParams, SandboxPermissions, SandboxSupport, SandboxType};
pub use outpost_types::{
    AccessScope, Delivery, DirectoryEntry, Empty, EndedBy, EndedProcess, EntryKind, EnvPolicy,
    EnvironmentCapabilities, EnvironmentInfo, ErrorKind, FileMetadata, IdScanner, Inherit,
    LimitError, LimitSupport, ManagedNetworkParams, NetworkAnswer, NetworkDecision,
    NetworkPolicyParams, NetworkProtocol, NetworkProxyParams, NetworkTarget, NetworkVerdict,
    ParseAccessScopeError, PathUri, PathUriError, ProcessEntry, ProcessState, ResourceLimits,
    ResourceUsage, Shell, ShellSnapshot, Signal, StartParams, Stream, TerminalSize, TreeKind,
    WalkEntry, WalkError, WalkOptions, WalkResult, WriteStatus,
};
pub use params::*;
pub use process::*;
pub use request_id::RequestId;
pub use session::*;
pub use v0::*;
pub use watch::*;
