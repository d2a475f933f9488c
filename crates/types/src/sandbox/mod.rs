//! Sandbox policies: the permissions of a sandboxed process, in terms that hold on every host.
//!
//! A policy names project roots and the temporary directory, whether or not they exist. The `sandbox` crate binds it to the paths of a host.

mod entry;
mod policy;

pub use entry::{Access, Entry, EntryPath, InvalidEntryPath, MissingPathBehavior, SpecialPath};
pub use policy::{
    FileSystem, Level, Network, Policy, Restricted, SandboxParams, SandboxPermissions,
    SandboxSupport, SandboxType,
};
