//! Text and environment variables, which must be Unicode because the wire carries only text.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    str::FromStr,
};

use clap::{Arg, Command, Error, builder::TypedValueParser, error::ErrorKind};
use outpost_engine::ServerEnvironment;

use crate::endpoint::TOKEN_VARIABLE;

/// Parses text. An error about text that isn't Unicode names the flag or the variable, and not the
/// value, which may be a secret.
#[derive(Clone, Copy)]
pub(crate) struct TextParser<T> {
    parse: fn(&str) -> Result<T, &'static str>,
    describe: fn(&OsStr, Option<&Arg>) -> String,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for TextParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        if value.to_str().is_none() {
            let message = format!("{} is not Unicode text\n", (self.describe)(value, arg));
            return Err(Error::raw(ErrorKind::InvalidUtf8, message).with_cmd(command));
        }
        self.parse.parse_ref(command, arg, value)
    }
}

/// Parses any text.
pub(crate) fn text() -> TextParser<String> {
    TextParser {
        parse: |text| Ok(text.to_owned()),
        describe: |_, arg| {
            let flag = arg.and_then(Arg::get_long).unwrap_or_default();
            format!("the value of --{flag}")
        },
    }
}

/// Parses `NAME=VALUE` or `NAME`.
pub(crate) fn variable() -> TextParser<Variable> {
    TextParser {
        parse: str::parse,
        describe: |value, _| {
            let mut parts = value.as_encoded_bytes().split(|byte| *byte == b'=');
            let name = String::from_utf8_lossy(parts.next().unwrap_or_default());
            format!("variable {name}")
        },
    }
}

/// A variable of the command's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// None to copy the local value.
    pub(crate) value: Option<String>,
}

impl FromStr for Variable {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("expected NAME=VALUE or NAME");
        }
        Ok(Variable {
            name: name.to_owned(),
            value,
        })
    }
}

/// A local variable that can't be sent, since the wire carries only Unicode text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot pass variable {name}: its value is not Unicode text; \
     leave out -e {name}, or give it a value with -e {name}=VALUE"
)]
pub(crate) struct NotUnicode {
    name: String,
}

/// Resolves the variables given by `-e NAME=VALUE` and `-e NAME`, which stands for the local value.
/// The last one with a name wins. A process that inherits the local environment gets a value that
/// isn't Unicode by inheritance.
pub(crate) fn env_args(
    variables: &[Variable],
    inherits: bool,
) -> Result<BTreeMap<String, String>, NotUnicode> {
    resolve(variables, inherits, |name| std::env::var_os(name))
}

fn resolve(
    variables: &[Variable],
    inherits: bool,
    here: impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, String>, NotUnicode> {
    let is_inherited = |name: &String, value: OsString| {
        let inherited = ServerEnvironment::new([(name.into(), value)]);
        inherits && inherited.get(name).is_some()
    };
    let mut collected = BTreeMap::new();
    for Variable { name, value } in variables {
        let value = match (value, here(name)) {
            (Some(value), _) => value.clone(),
            // An unset variable stays unset.
            (None, None) => continue,
            (None, Some(value)) => match value.into_string() {
                Ok(value) => value,
                Err(value) if is_inherited(name, value.clone()) => {
                    collected.remove(name);
                    continue;
                }
                Err(_) => return Err(NotUnicode { name: name.clone() }),
            },
        };
        collected.insert(name.clone(), value);
    }
    Ok(collected)
}

/// The local variables that are Unicode text, since the wire carries nothing else, without the
/// token for servers.
pub(crate) fn local_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != TOKEN_VARIABLE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn here(name: &str) -> Option<OsString> {
        match name {
            "TEXT" => Some("text".into()),
            "ODD" | "OUTPOST_ODD" => Some(OsString::from_vec(vec![b'a', 0xff])),
            _ => None,
        }
    }

    fn variables(message: &[&str]) -> Vec<Variable> {
        message.iter().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn names_resolve_to_local_values() {
        let message = variables(&["TEXT", "A=1", "NOT_THERE", "A=2", "ODD=even"]);
        let expected = [("A", "2"), ("ODD", "even"), ("TEXT", "text")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = BTreeMap::from(expected);
        assert_eq!(resolve(&message, false, here), Ok(expected.clone()));
        assert_eq!(resolve(&message, true, here), Ok(expected));
    }

    #[test]
    fn non_unicode_values_are_inherited_or_rejected() {
        let odd = variables(&["ODD=even", "ODD"]);
        let name = "ODD".to_owned();
        assert_eq!(resolve(&odd, false, here), Err(NotUnicode { name }));
        // The inherited value replaces the given one.
        assert_eq!(resolve(&odd, true, here), Ok(BTreeMap::new()));
        // The server's own variables are never inherited.
        let own = variables(&["OUTPOST_ODD"]);
        let name = "OUTPOST_ODD".to_owned();
        assert_eq!(resolve(&own, true, here), Err(NotUnicode { name }));
    }

    #[test]
    fn variable_has_a_name_and_an_optional_value() {
        let variable = |text: &str| text.parse::<Variable>().map(|v| (v.name, v.value));
        assert_eq!(variable("A=b=c"), Ok(("A".into(), Some("b=c".into()))));
        assert_eq!(variable("A="), Ok(("A".into(), Some(String::new()))));
        assert_eq!(variable("A"), Ok(("A".into(), None)));
        assert!(variable("=b").is_err());
    }
}
