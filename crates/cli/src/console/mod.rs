//! The streams of this program, connected with those of a process.
//!
//! - [`converse`] puts it all together, and answers how it ended
//! - [`Typed`] is what comes in here, and goes to the process's input
//! - `printed` is what comes out of the process, and goes to stdout and stderr
//! - [`Signals`] are passed on instead of ending us
//! - [`RawMode`] makes a terminal pass everything on; whatever happens, it is
//!   put back: by [`guard`] if we can't
//! - [`Notice`] tells a person what the connection does

mod converse;
pub(crate) mod guard;
mod notice;
mod printed;
mod raw_mode;
mod signals;
mod typed;

pub(crate) use converse::{Conversation, Ending, converse};
pub(crate) use notice::Notice;
pub(crate) use raw_mode::{RawMode, window_size};
pub(crate) use signals::{Parting, Signals};
pub(crate) use typed::{Key, Typed, WayOut};
