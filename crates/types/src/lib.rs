//! The vocabulary that all crates share: one definition per concept.
//!
//! The types serialize with the names of the wire protocol, so that no crate needs a copy of its
//! own or a conversion between copies. This crate does no I/O and keeps no state.
//!
//! - [`Seq`], [`Stream`], [`ProcessState`], [`WriteStatus`]: the events and states of a process
//! - [`StartParams`], [`EnvPolicy`], [`TerminalSize`], [`Signal`]: requests about processes
//! - [`ResourceLimits`], [`ResourceUsage`], [`EndedBy`]: resources of a process
//! - [`ProcessEntry`], [`EnvironmentInfo`]: descriptions of processes and hosts
//! - [`Delivery`], [`TreeKind`]: how output is acknowledged, and how process trees are tracked
//! - [`ErrorKind`]: the kinds of errors, on the wire and in the client
//! - [`NetworkProxyParams`], [`NetworkDecision`]: the proxy of a process, and what it decides
//! - [`PathUri`]: the form of a path on the wire
//! - [`FileOp`], [`FileReply`], [`FileErrorKind`]: file operations as data
//! - [`IdScanner`]: the id of a message that is discarded
//! - [`sandbox`]: the policy of a sandboxed process
//! - [`strict_enum`], [`optional_member`]: serde building blocks for the types here and in `protocol`

pub mod file_op;
pub mod optional_member;
pub mod sandbox;
pub mod strict_enum;

mod access_scope;
mod environment_info;
mod error_kind;
mod file_info;
mod id_scanner;
mod network;
mod path_uri;
mod process;
mod resources;

pub use access_scope::{AccessScope, ParseAccessScopeError};
pub use environment_info::{EnvironmentCapabilities, EnvironmentInfo, Shell, TreeKind};
pub use error_kind::ErrorKind;
pub use file_info::{
    DirectoryEntry, EntryKind, FileMetadata, WalkEntry, WalkError, WalkOptions, WalkResult,
};
pub use file_op::*;
pub use id_scanner::IdScanner;
pub use network::{
    AuditMetadata, DecisionScope, DecisionSource, DomainAccess, ManagedNetworkParams,
    NetworkAnswer, NetworkDecision, NetworkPolicyParams, NetworkProtocol, NetworkProxyConfig,
    NetworkProxyParams, NetworkTarget, NetworkVerdict, ProxyMode, UnixSocketAccess,
};
pub use optional_member::Empty;
pub use path_uri::{PathUri, PathUriError};
pub use process::{
    Delivery, EndedProcess, EnvPolicy, Inherit, ProcessEntry, ProcessState, Seq, ShellSnapshot,
    Signal, StartParams, Stream, TerminalSize, WriteStatus,
};
pub use resources::{EndedBy, LimitError, LimitName, LimitSupport, ResourceLimits, ResourceUsage};
