//! What people type to name a process.

use uuid::Uuid;

const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

/// A new name: short enough to be typed, and as good as unique.
pub(super) fn random() -> String {
    // The lower half of such an id is random but for its first bits.
    let mut rest = Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 8);
    let letters = (0..LENGTH).map(|_| {
        let letter = ALPHABET[(rest % 36) as usize];
        rest /= 36;
        char::from(letter)
    });
    letters.collect()
}

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// The beginning of a process's name.
    Prefix(&'a str),
    /// A process of a session whose key is known: for servers that give no list.
    Keyed { session: &'a str, process: &'a str },
}

impl<'a> Typed<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        match text.split_once('/') {
            Some((session, process)) => Typed::Keyed { session, process },
            None => Typed::Prefix(text),
        }
    }
}

/// The name of a process on a server that gives no list: its session's key is
/// part of it.
pub(super) fn keyed(session: &str, process: &str) -> String {
    format!("{session}/{process}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_eight_letters_and_never_the_same() {
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
    fn what_was_typed_is_a_beginning_or_a_key() {
        assert_eq!(Typed::read("k3x"), Typed::Prefix("k3x"));
        let keyed = keyed("11-22", "k3xabcde");
        let (session, process) = ("11-22", "k3xabcde");
        assert_eq!(Typed::read(&keyed), Typed::Keyed { session, process });
    }
}
