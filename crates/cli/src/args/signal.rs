//! Signal names and numbers.

use outpost_client::Signal;
use rustix::process::Signal as OsSignal;

/// Supported signals by name and number.
const SIGNALS: [(&str, OsSignal, Signal); 10] = [
    ("HUP", OsSignal::HUP, Signal::Hangup),
    ("INT", OsSignal::INT, Signal::Interrupt),
    ("QUIT", OsSignal::QUIT, Signal::Quit),
    ("KILL", OsSignal::KILL, Signal::Kill),
    ("USR1", OsSignal::USR1, Signal::User1),
    ("USR2", OsSignal::USR2, Signal::User2),
    ("TERM", OsSignal::TERM, Signal::Terminate),
    ("CONT", OsSignal::CONT, Signal::Continue),
    ("STOP", OsSignal::STOP, Signal::Stop),
    ("WINCH", OsSignal::WINCH, Signal::WindowChange),
];

/// Parses a name with or without `SIG`, or a number.
pub(crate) fn signal(text: &str) -> Result<Signal, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let number = text.parse::<i32>().ok();
    let meant = SIGNALS
        .iter()
        .find(|(known, signal, _)| *known == name || number == Some(signal.as_raw()));
    meant.map(|(_, _, signal)| *signal).ok_or_else(|| {
        let names: Vec<_> = SIGNALS.iter().map(|(name, ..)| *name).collect();
        format!("expected one of {}, or its number", names.join(", "))
    })
}

/// The signal's name.
pub(crate) fn name_of(signal: Signal) -> &'static str {
    let known = SIGNALS.iter().find(|(_, _, known)| *known == signal);
    known.map_or("that signal", |(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_parse_by_name_and_number() {
        for text in ["INT", "sigint", "SIGINT", "int", "2"] {
            assert_eq!(signal(text), Ok(Signal::Interrupt), "{text}");
        }
        for (name, number, meant) in SIGNALS {
            assert_eq!(signal(name), Ok(meant));
            assert_eq!(signal(&number.as_raw().to_string()), Ok(meant));
            assert_eq!(name_of(meant), name);
        }
        for text in ["", "SIG", "0", "-9", "SEGV", "99", "TERM "] {
            assert!(signal(text).unwrap_err().contains("TERM"), "{text}");
        }
    }
}
