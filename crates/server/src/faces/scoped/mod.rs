//! What the faces have in common whose processes belong to a connection: one
//! way to start, to tell, to write, to resize and to end. A face adds its words.

mod account;
mod control;
mod share;
mod wish;

pub(crate) use account::{Account, Ended, Words};
pub(crate) use control::{kill, resize, write};
pub(crate) use wish::{Output, Wish};
