//! A started program, in parts for several owners.

use crate::control::Control;
use crate::exit::ExitWatch;
use crate::input::Input;
use crate::output::Output;

/// A started program. Its parts may be dropped in any order; none of them kills it.
#[derive(Debug)]
pub struct Child {
    /// Signals, size, tree. The only part that may be cloned.
    pub control: Control,
    /// Where its input is written, unless it has none.
    pub stdin: Option<Input>,
    /// Stdout and stderr, in this order, or the terminal.
    pub outputs: Vec<Output>,
    /// Its end.
    pub exit: ExitWatch,
}
