//! Connects this program's stdio and signals with a process.
//!
//! - [`attach`]: runs all of the following, and returns the outcome
//! - [`StdinForwarder`]: stdin to the process
//! - [`output`]: output of the process to stdout and stderr
//! - [`Signals`]: forwards signals to the process
//! - [`RawMode`]: terminal settings, restored by [`guard`] if this program is killed
//! - [`Notice`]: messages about the connection

mod attach;
pub(crate) mod guard;
mod notice;
mod output;
mod raw_mode;
mod signals;
mod stdin;

pub(crate) use attach::{Attachment, Outcome, attach};
pub(crate) use notice::Notice;
pub(crate) use raw_mode::{RawMode, window_size};
pub(crate) use signals::{OnLeave, Signals};
pub(crate) use stdin::{EscapeKey, Key, StdinForwarder};
