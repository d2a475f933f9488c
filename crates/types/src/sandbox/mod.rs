//! Sandbox policies: the permissions of a confined process, in terms that hold on every host.
//!
//! A policy speaks of project roots and the temporary directory, and does not ask whether a path
//! exists. The `sandbox` crate binds it to the paths of a host.

mod entry;
mod level;
mod notation;
mod params;
mod policy;
mod support;

pub use entry::{Access, Entry, EntryPath, MissingPathBehavior, SpecialPath};
pub use level::Level;
pub use notation::InvalidEntryPath;
pub use params::{Confinement, SandboxParams};
pub use policy::{FileSystem, Network, Policy, Restricted};
pub use support::{SandboxSupport, SandboxType};
