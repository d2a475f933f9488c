//! Terminal sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalSize {
    /// The number of lines.
    #[schemars(range(min = 1))]
    pub rows: u16,
    /// The number of characters per line.
    #[schemars(range(min = 1))]
    pub cols: u16,
}

/// The size of a terminal for which none was requested: 24 rows of 80 columns.
impl Default for TerminalSize {
    fn default() -> Self {
        TerminalSize { rows: 24, cols: 80 }
    }
}
