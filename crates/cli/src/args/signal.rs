//! Signals as people write them.

use outpost_client::SignalName;
use rustix::process::Signal;

/// What can be sent, by name and number.
const SIGNALS: [(&str, Signal, SignalName); 10] = [
    ("HUP", Signal::HUP, SignalName::Hangup),
    ("INT", Signal::INT, SignalName::Interrupt),
    ("QUIT", Signal::QUIT, SignalName::Quit),
    ("KILL", Signal::KILL, SignalName::Kill),
    ("USR1", Signal::USR1, SignalName::User1),
    ("USR2", Signal::USR2, SignalName::User2),
    ("TERM", Signal::TERM, SignalName::Terminate),
    ("CONT", Signal::CONT, SignalName::Continue),
    ("STOP", Signal::STOP, SignalName::Stop),
    ("WINCH", Signal::WINCH, SignalName::WindowChange),
];

/// Reads a name with or without `SIG`, or a number.
pub(crate) fn signal(text: &str) -> Result<SignalName, String> {
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

/// Its name, for people.
pub(crate) fn name_of(signal: SignalName) -> &'static str {
    let known = SIGNALS.iter().find(|(_, _, known)| *known == signal);
    known.map_or("that signal", |(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_sig_and_numbers() {
        for text in ["INT", "sigint", "SIGINT", "int", "2"] {
            assert_eq!(signal(text), Ok(SignalName::Interrupt), "{text}");
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
