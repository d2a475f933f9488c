//! Variables that are handed on by `-e`, with a value or by their name alone.

use std::{collections::BTreeMap, ffi::OsString};

use outpost_engine::ServerEnvironment;

use crate::args::Variable;

/// What is here and can't be handed on, since the wire carries text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "variable {name} is not Unicode text, which alone can be handed on; \
     leave out -e {name}, or give it a value with -e {name}=VALUE"
)]
pub(crate) struct NotText {
    name: String,
}

/// Those that were given, and those that were named and are here. Of two with one name
/// the last one counts.
pub(crate) fn handed_on(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, String>, NotText> {
    collected(variables, here, |_, _| false)
}

/// The same for what inherits everything of ours: a value that is no text gets there in
/// this way.
pub(crate) fn handed_on_beside_ours(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, String>, NotText> {
    collected(variables, here, |name, value| {
        let inherited = ServerEnvironment::new([(name.into(), value)]);
        inherited.get(name).is_some()
    })
}

fn collected(
    variables: &[Variable],
    here: impl Fn(&str) -> Option<OsString>,
    is_inherited: impl Fn(&str, OsString) -> bool,
) -> Result<BTreeMap<String, String>, NotText> {
    let mut collected = BTreeMap::new();
    for Variable { name, value } in variables {
        let value = match (value, here(name)) {
            (Some(value), _) => value.clone(),
            // Not there here, so not there either.
            (None, None) => continue,
            (None, Some(value)) => match value.into_string() {
                Ok(value) => value,
                Err(value) if is_inherited(name, value.clone()) => {
                    collected.remove(name);
                    continue;
                }
                Err(_) => return Err(NotText { name: name.clone() }),
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

    fn variables(words: &[&str]) -> Vec<Variable> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn names_stand_for_what_is_here() {
        let words = variables(&["TEXT", "A=1", "NOT_THERE", "A=2", "ODD=even"]);
        let expected = [("A", "2"), ("ODD", "even"), ("TEXT", "text")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = BTreeMap::from(expected);
        assert_eq!(handed_on(&words, here), Ok(expected.clone()));
        assert_eq!(handed_on_beside_ours(&words, here), Ok(expected));
    }

    #[test]
    fn what_is_no_text_is_inherited_or_refused() {
        let odd = variables(&["ODD=even", "ODD"]);
        let name = "ODD".to_owned();
        assert_eq!(handed_on(&odd, here), Err(NotText { name }));
        // And not what was said before.
        assert_eq!(handed_on_beside_ours(&odd, here), Ok(BTreeMap::new()));
        // What is our own is never inherited.
        let own = variables(&["OUTPOST_ODD"]);
        let name = "OUTPOST_ODD".to_owned();
        assert_eq!(handed_on_beside_ours(&own, here), Err(NotText { name }));
    }
}
