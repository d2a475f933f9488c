//! The face of the files: `fs/*`.
//!
//! - `desk` is what a connection has of it: where operations run, and how many at once
//! - `handles` is the table of what a connection has open
//! - `confinement` decides who does an operation, the server or somebody confined
//! - `read_file`, `write_file`, `blocks`, `stream`, `entries` and `listings` are the verbs

mod blocks;
mod confinement;
mod desk;
mod entries;
mod handles;
mod listings;
mod read_file;
mod stream;
mod write_file;

pub(crate) use blocks::{close, open, read_block};
pub(crate) use desk::{Desk, Subject};
pub(crate) use entries::{canonicalize, copy, create_directory, get_metadata, remove};
pub(crate) use handles::{Occupied, Place};
pub(crate) use listings::{read_directory, walk};
pub(crate) use read_file::read_file;
pub(crate) use stream::{commit, create_stream, write_block};
pub(crate) use write_file::write_file;
