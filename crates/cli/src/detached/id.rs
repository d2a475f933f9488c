//! Process names that people type.

use uuid::Uuid;

const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

/// A new id: short enough to type, and practically unique.
pub(super) fn random() -> String {
    // The lower half of a v4 UUID is random except for its first bits.
    let mut rest = Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 8);
    let letters = (0..LENGTH).map(|_| {
        let letter = ALPHABET[(rest % 36) as usize];
        rest /= 36;
        char::from(letter)
    });
    letters.collect()
}

/// A process as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessRef<'a> {
    /// A prefix of the process id.
    Prefix(&'a str),
    /// A process in a known session, for servers that don't list their sessions.
    Keyed { session: &'a str, process: &'a str },
}

impl<'a> ProcessRef<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        match text.split_once('/') {
            Some((session, process)) => ProcessRef::Keyed { session, process },
            None => ProcessRef::Prefix(text),
        }
    }
}

/// The name of a process on a server that doesn't list its sessions.
pub(super) fn keyed(session: &str, process: &str) -> String {
    format!("{session}/{process}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_eight_characters_and_unique() {
        let names: HashSet<_> = (0..1000).map(|_| random()).collect();
        assert_eq!(names.len(), 1000);
        for name in &names {
            assert_eq!(name.len(), LENGTH, "{name}");
            assert!(name.bytes().all(|byte| ALPHABET.contains(&byte)), "{name}");
        }
        let used: HashSet<_> = names.iter().flat_map(|name| name.chars()).collect();
        assert_eq!(used.len(), ALPHABET.len(), "every letter is used");
    }

    #[test]
    fn name_is_a_prefix_or_has_a_session() {
        assert_eq!(ProcessRef::parse("k3x"), ProcessRef::Prefix("k3x"));
        let keyed = keyed("11-22", "k3xabcde");
        let (session, process) = ("11-22", "k3xabcde");
        assert_eq!(
            ProcessRef::parse(&keyed),
            ProcessRef::Keyed { session, process }
        );
    }
}
