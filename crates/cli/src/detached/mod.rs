//! Work that goes on when nobody watches, like in tmux: each `outpost run
//! --detach` is a session of its own with one process in it, which stays until
//! it is ended.
//!
//! - [`id`] is what people type, and [`label`] what they see
//! - [`site`] is where it runs: the user's own server, or one that was named
//! - [`start`] starts it, [`find`] finds it again by what was typed
//! - [`list`] is all there is

mod find;
mod id;
mod label;
mod list;
mod site;
mod start;

pub(crate) use find::{Claim, Found, open};
pub(crate) use label::{command_of, label_of};
pub(crate) use list::{list, processes};
pub(crate) use site::{Site, passing};
pub(crate) use start::{NotStarted, start};
