//! Signal numbers.

use outpost_types::Signal;
use rustix::process::Signal as OsSignal;

/// The operating system's number of a signal.
pub(crate) fn os_signal(signal: Signal) -> OsSignal {
    match signal {
        Signal::Interrupt => OsSignal::INT,
        Signal::Terminate => OsSignal::TERM,
        Signal::Kill => OsSignal::KILL,
        Signal::Hangup => OsSignal::HUP,
        Signal::Quit => OsSignal::QUIT,
        Signal::Stop => OsSignal::STOP,
        Signal::Continue => OsSignal::CONT,
        Signal::User1 => OsSignal::USR1,
        Signal::User2 => OsSignal::USR2,
        Signal::WindowChange => OsSignal::WINCH,
    }
}
