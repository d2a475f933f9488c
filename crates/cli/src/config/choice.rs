//! Settings that are one of a few words.

use outpost_engine::{Inherit, TreeChoice, sandbox::Level};
use serde_json::Value;

use super::spoken::{Spoken, Word, Wrong};
use crate::logging::LogFormat;

/// A type with a word for each of its values.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    const ALL: &'static [(Self, Word)];
}

const fn word(name: &'static str, meaning: &'static str) -> Word {
    Word { name, meaning }
}

impl<T: Choice> Spoken for T {
    fn from_value(value: &Value) -> Result<Self, Wrong> {
        let found = T::ALL.iter().find(|(_, word)| value == word.name);
        let names = || T::ALL.iter().map(|(_, word)| word.name).collect();
        found
            .map(|(choice, _)| *choice)
            .ok_or_else(|| Wrong::OneOf(names()))
    }

    fn to_value(&self) -> Value {
        let found = T::ALL.iter().find(|(choice, _)| choice == self);
        found.map_or(Value::Null, |(_, word)| Value::from(word.name))
    }

    fn words() -> Vec<Word> {
        T::ALL.iter().map(|(_, word)| *word).collect()
    }
}

impl Choice for TreeChoice {
    const ALL: &'static [(Self, Word)] = &[
        (
            TreeChoice::Auto,
            word("auto", "A cgroup, else a keeper, else a group"),
        ),
        (
            TreeChoice::Cgroup,
            word("cgroup", "A cgroup for each process"),
        ),
        (
            TreeChoice::Keeper,
            word(
                "keeper",
                "A small process above each one, which inherits its orphans",
            ),
        ),
        (
            TreeChoice::Group,
            word("group", "Process groups; a daemon may escape them"),
        ),
    ];
}

impl Choice for Level {
    const ALL: &'static [(Self, Word)] = &[
        (
            Level::Namespaces,
            word(
                "namespaces",
                "Namespaces, with seccomp and Landlock inside; refused where they are missing",
            ),
        ),
        (
            Level::Landlock,
            word("landlock", "Landlock and seccomp alone: a weaker promise"),
        ),
    ];
}

impl Choice for LogFormat {
    const ALL: &'static [(Self, Word)] = &[
        (LogFormat::Text, word("text", "For people")),
        (LogFormat::Json, word("json", "One JSON object per line")),
    ];
}

impl Choice for Inherit {
    const ALL: &'static [(Self, Word)] = &[
        (Inherit::All, word("all", "Everything the server has")),
        (
            Inherit::Core,
            word("core", "The names that nearly every program wants"),
        ),
        (Inherit::None, word("none", "Nothing")),
    ];
}
