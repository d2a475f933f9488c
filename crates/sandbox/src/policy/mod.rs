//! Policies and named profiles.
//!
//! [`planning`](crate::planning) binds a policy to the paths of a host.

mod built_in;
mod profile;

pub use built_in::{BuiltIn, Workspace};
pub use outpost_types::sandbox::{
    Entry, EntryPath, FileSystem, InvalidEntryPath, MissingPathBehavior, Policy, Restricted,
    SpecialPath,
};
pub use profile::{Profile, Profiles, UnknownProfile};
