//! A running child, in parts for several owners.

use crate::control::Control;
use crate::exit::ExitWatch;
use crate::input::Input;
use crate::output::Output;

/// A running child. Its parts may be dropped in any order; dropping them does not kill it.
#[derive(Debug)]
pub struct Child {
    /// Signals, terminal size and process tree. The only part that can be cloned.
    pub control: Control,
    /// The writing side of stdin, if it is not `/dev/null`.
    pub stdin: Option<Input>,
    /// Stdout and stderr, in this order, or the terminal.
    pub outputs: Vec<Output>,
    /// The exit status.
    pub exit: ExitWatch,
}
