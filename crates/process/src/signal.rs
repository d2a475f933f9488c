//! The signals a user may send.

use rustix::process::Signal as Os;

/// A signal that makes sense for somebody else's program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, what Ctrl-C sends.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGHUP, what a closing terminal sends.
    Hangup,
    /// SIGQUIT.
    Quit,
    /// SIGSTOP, which can't be refused.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGWINCH. A resize sends it by itself.
    WindowChange,
}

impl Signal {
    pub(crate) fn os(self) -> Os {
        match self {
            Signal::Interrupt => Os::INT,
            Signal::Terminate => Os::TERM,
            Signal::Kill => Os::KILL,
            Signal::Hangup => Os::HUP,
            Signal::Quit => Os::QUIT,
            Signal::Stop => Os::STOP,
            Signal::Continue => Os::CONT,
            Signal::User1 => Os::USR1,
            Signal::User2 => Os::USR2,
            Signal::WindowChange => Os::WINCH,
        }
    }
}
