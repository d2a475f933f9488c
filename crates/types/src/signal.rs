//! Signals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A signal that can be sent to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C. The only signal that released servers know.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGHUP, sent by a closing terminal.
    Hangup,
    /// SIGQUIT.
    Quit,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGWINCH. Resizing a terminal sends it automatically.
    WindowChange,
}

crate::string_enum!(Signal);
