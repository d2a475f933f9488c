//! Resolves the variables given by `-e NAME=VALUE` and `-e NAME`.

use std::{collections::BTreeMap, ffi::OsString};

use outpost_engine::ServerEnvironment;

use crate::args::Variable;

/// A local variable that can't be sent, since the wire carries only Unicode text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot pass variable {name}: its value is not Unicode text; \
     leave out -e {name}, or give it a value with -e {name}=VALUE"
)]
pub(crate) struct NotUnicode {
    name: String,
}

/// Resolves the variables: given values, and local values of names. The last one with a name wins.
pub(crate) fn env_args(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, String>, NotUnicode> {
    resolve(variables, here, |_, _| false)
}

/// Like [`env_args`], for a process that inherits the local environment: a value that isn't Unicode
/// reaches it by inheritance.
pub(crate) fn env_args_over_inherited(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, String>, NotUnicode> {
    resolve(variables, here, |name, value| {
        let inherited = ServerEnvironment::new([(name.into(), value)]);
        inherited.get(name).is_some()
    })
}

fn resolve(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
    is_inherited: impl Fn(&str, OsString) -> bool,
) -> Result<BTreeMap<String, String>, NotUnicode> {
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
        assert_eq!(env_args(&message, here), Ok(expected.clone()));
        assert_eq!(env_args_over_inherited(&message, here), Ok(expected));
    }

    #[test]
    fn non_unicode_values_are_inherited_or_rejected() {
        let odd = variables(&["ODD=even", "ODD"]);
        let name = "ODD".to_owned();
        assert_eq!(env_args(&odd, here), Err(NotUnicode { name }));
        // The inherited value replaces the given one.
        assert_eq!(env_args_over_inherited(&odd, here), Ok(BTreeMap::new()));
        // The server's own variables are never inherited.
        let own = variables(&["OUTPOST_ODD"]);
        let name = "OUTPOST_ODD".to_owned();
        assert_eq!(
            env_args_over_inherited(&own, here),
            Err(NotUnicode { name })
        );
    }
}
