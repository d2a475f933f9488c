//! Copies files between executors, for `outpost cp`.
//!
//! - [`locations`]: resolves paths, and connects to their servers
//! - [`destination`]: names of copies, by the rules of cp(1); pure
//! - [`mod@copy`]: the copy itself; [`tree`] walks directories and [`copy_file`] copies one file to a
//!   [`pending_file`]
//! - [`progress`]: counters of a copy

mod copy;
mod copy_file;
mod destination;
mod locations;
mod pending_file;
mod progress;
mod tree;

pub(crate) use copy::{CopyOptions, copy, file_error};
pub(crate) use locations::{FileLocation, LocationError, Locations};
pub(crate) use progress::{CopyProgress, Totals};
