//! What somebody wants a process to be confined to, in portable terms.
//!
//! A policy knows nothing of the host it is sent to: it speaks of project roots and of the
//! temporary directory, and whether a path exists is not its concern. [`planning`](crate::planning)
//! binds it to the host.

mod built_in;
mod entry;
mod notation;
mod profile;
mod wish;

pub use built_in::{BuiltIn, Workspace};
pub use entry::{Entry, Missing, Place, Special};
pub use notation::NotAPlace;
pub use profile::{Profile, Profiles, UnknownProfile};
pub use wish::{FileSystem, Policy, Restricted};
