//! Files on their way from one place to another.
//!
//! - [`sites`] finds the files that a location names, and connects to their servers
//! - [`aim`] decides what a copy is called, as cp(1) does; it is pure
//! - [`copying`] is the course of a copy: [`tree`] finds what there is, [`stream`]
//!   brings one file over, and [`draft`] is what becomes of it there
//! - [`tally`] counts, for those who watch

mod aim;
mod copying;
mod draft;
mod sites;
mod stream;
mod tally;
mod tree;

pub(crate) use copying::{Course, copy, of_place};
pub(crate) use sites::{Senseless, Site, Sites};
pub(crate) use tally::{Tally, Totals};
