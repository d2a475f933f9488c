//! Copies files between executors, for `outpost cp`.
//!
//! - [`location_resolver`]: resolves paths, and connects to their servers
//! - [`destination`]: names of copies, by the rules of cp(1); pure
//! - [`mod@copy`]: the copy itself; [`tree`] walks directories and [`copy_file`] copies one file
//! - [`progress`]: counters, progress bar and summary

mod copy;
mod copy_file;
mod destination;
mod location_resolver;
mod progress;
mod tree;

pub(crate) use copy::{CopyOptions, copy, file_error};
pub(crate) use copy_file::file_to_stdout;
pub(crate) use location_resolver::{
    Address, FileLocation, LocationError, LocationResolver, for_each_file,
};
pub(crate) use progress::{CopyBar, CopyProgress, summary};
