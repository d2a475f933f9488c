//! Settings with a fixed set of values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use outpost_engine::{Inherit, TreeChoice, sandbox::Level};
use serde::{Deserialize as _, Deserializer, Serializer, de, ser};
use serde_json::Value;

use crate::logging::LogFormat;

/// A type with a name for each of its values.
pub(crate) trait Choice: Copy + PartialEq + Send + Sync + 'static {
    const ALL: &'static [(Self, ChoiceName)];

    fn from_name(name: &str) -> Option<Self> {
        let means = |word: &ChoiceName| word.name == name || word.deprecated == Some(name);
        let found = Self::ALL.iter().find(|(_, word)| means(word));
        found.map(|(choice, _)| *choice)
    }
}

/// The name of a value, and its description in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceName {
    name: &'static str,
    description: &'static str,
    /// A former name that is still accepted.
    deprecated: Option<&'static str>,
}

const fn word(name: &'static str, description: &'static str) -> ChoiceName {
    ChoiceName {
        name,
        description,
        deprecated: None,
    }
}

/// Parses a flag.
pub(super) fn parser<T: Choice>() -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter();
    let words = words.map(|(_, word)| {
        let value = PossibleValue::new(word.name).help(word.description);
        value.aliases(word.deprecated)
    });
    PossibleValuesParser::new(words)
        .try_map(|name| T::from_name(&name).ok_or("not one of the possible values"))
}

pub(super) fn deserialize<'de, T: Choice, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    value.as_str().and_then(T::from_name).ok_or_else(|| {
        let names: Vec<_> = T::ALL.iter().map(|(_, word)| word.name).collect();
        de::Error::custom(format_args!("expected one of {}", names.join(", ")))
    })
}

pub(super) fn serialize<T: Choice, S: Serializer>(
    choice: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let found = T::ALL.iter().find(|(known, _)| known == choice);
    let (_, word) = found.ok_or_else(|| ser::Error::custom("the value has no name"))?;
    serializer.serialize_str(word.name)
}

impl Choice for TreeChoice {
    const ALL: &'static [(Self, ChoiceName)] = &[
        (
            TreeChoice::Auto,
            word("auto", "A cgroup, else a subreaper, else a group"),
        ),
        (
            TreeChoice::Cgroup,
            word("cgroup", "A cgroup for each process"),
        ),
        (
            TreeChoice::Subreaper,
            ChoiceName {
                name: "subreaper",
                description: "A small process above each one, which inherits its orphans",
                deprecated: Some("keeper"),
            },
        ),
        (
            TreeChoice::Group,
            word("group", "Process groups; a daemon may escape them"),
        ),
    ];
}

impl Choice for Level {
    const ALL: &'static [(Self, ChoiceName)] = &[
        (
            Level::Namespaces,
            word(
                "namespaces",
                "Namespaces, seccomp and Landlock; rejected where namespaces are missing",
            ),
        ),
        (
            Level::Landlock,
            word("landlock", "Landlock and seccomp only: weaker isolation"),
        ),
    ];
}

impl Choice for LogFormat {
    const ALL: &'static [(Self, ChoiceName)] = &[
        (LogFormat::Text, word("text", "For people")),
        (LogFormat::Json, word("json", "One JSON object per line")),
    ];
}

impl Choice for Inherit {
    const ALL: &'static [(Self, ChoiceName)] = &[
        (Inherit::All, word("all", "The server's whole environment")),
        (
            Inherit::Core,
            word("core", "The variables that nearly every program needs"),
        ),
        (Inherit::None, word("none", "Nothing")),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecated_name_of_tree_kind_is_accepted() {
        for name in ["keeper", "subreaper"] {
            assert_eq!(TreeChoice::from_name(name), Some(TreeChoice::Subreaper));
        }
    }
}
