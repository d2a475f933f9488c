//! Connects this program's stdio and signals with a process.
//!
//! - [`attach`]: runs all of the following, and returns the outcome
//! - [`StdinForwarder`]: stdin to the process
//! - [`output`]: output of the process to stdout and stderr
//! - [`Signals`]: forwards signals to the process
//! - [`RawMode`]: terminal settings, restored by [`guard_terminal`] if this program is killed
//! - [`Notice`]: messages about the connection

mod attach;
mod notice;
mod output;
mod signals;
mod stdin;
mod terminal;

pub(crate) use attach::{Attachment, Outcome, attach};
pub(crate) use notice::Notice;
pub(crate) use signals::{OnTermination, Signals};
pub(crate) use stdin::{EscapeKey, Key, StdinForwarder};
pub(crate) use terminal::{RawMode, guard_terminal, window_size};
