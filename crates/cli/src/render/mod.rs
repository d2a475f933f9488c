//! Output for people.
//!
//! - [`screen`]: colours and aligned columns; [`command_line`]: quoting
//! - [`transcript`]: output of a process in order
//! - [`errors`]: error messages; [`out`]: stdout and stderr
//! - [`mod@visible`]: escapes text of others

pub(crate) mod command_line;
pub(crate) mod errors;
pub(crate) mod out;
pub(crate) mod screen;
pub(crate) mod transcript;
pub(crate) mod visible;
