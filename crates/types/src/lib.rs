//! The vocabulary that all crates share: one definition per concept.
//!
//! The types serialize with the names of the wire protocol, so that no crate needs a copy of its
//! own or a conversion between copies. This crate does no I/O and keeps no state.
//!
//! - [`Seq`], [`Stream`], [`ProcessState`], [`WriteStatus`]: the events and states of a process
//! - [`StartParams`], [`EnvPolicy`], [`TerminalSize`], [`Signal`]: requests about processes
//! - [`ProcessEntry`], [`EnvironmentInfo`]: descriptions of processes and hosts
//! - [`Delivery`], [`TreeKind`]: how output is acknowledged, and how process trees are tracked
//! - [`ErrorKind`]: the kinds of errors, on the wire and in the client
//! - [`PathUri`]: the form of a path on the wire
//! - [`FileOp`], [`FileReply`], [`FileErrorKind`]: file operations as data
//! - [`sandbox`]: the policy of a confined process
//! - [`strict_enum`], [`members`]: serde building blocks for the types here and in `protocol`

pub mod file_op;
pub mod members;
pub mod sandbox;
pub mod strict_enum;

mod environment_info;
mod error_kind;
mod file_listing;
mod path_uri;
mod process;

pub use environment_info::{EnvironmentCapabilities, EnvironmentInfo, Shell, TreeKind};
pub use error_kind::ErrorKind;
pub use file_listing::{
    DirectoryEntry, EntryKind, FileMetadata, WalkEntry, WalkError, WalkOptions, WalkResult,
};
pub use file_op::*;
pub use members::Empty;
pub use path_uri::{PathUri, PathUriError};
pub use process::{
    Delivery, EndedProcess, EnvPolicy, Inherit, ProcessEntry, ProcessState, Seq, Signal,
    StartParams, Stream, TerminalSize, WriteStatus,
};
