//! Shell snapshots: the state that the profile of a login shell leaves. It is captured once for a key
//! and restored for each command, without running the profile again.
//!
//! - `request`: whether a start asks for a snapshot, and of which shell
//! - `shell`: the scripts that print and restore the state of each shell
//! - `state`: reads and parses the printed state
//! - `snapshot`: the state of one shell, and commands that restore it
//! - `cache`: the snapshots of a session
//!
//! All of it is pure, except that a command gets its state as a file in memory. Captures are run by
//! [`Engine`](crate::Engine).

mod cache;
mod request;
mod shell;
mod snapshot;
mod state;

pub(crate) use cache::{Charge, SnapshotCache, SnapshotEntry, SnapshotKey};
pub use request::{InvalidSnapshot, SnapshotRequest};
pub(crate) use snapshot::Snapshot;
pub(crate) use state::{Marker, Progress, StateReader};
