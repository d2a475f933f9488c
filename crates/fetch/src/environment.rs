//! Headers whose values only this machine knows.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use crate::RequestError;

/// Variables with credentials of the program that this one works for, or its own: whoever may make
/// requests from here may not have them sent to where it likes.
const PROTECTED: [&str; 14] = [
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CONNECTORS_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
];
const OWN_PREFIX: &str = "OUTPOST_";

/// Whether a variable may not be used for a header, however its name is written.
#[must_use]
pub fn is_protected(variable: &str) -> bool {
    let own = variable
        .get(..OWN_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX));
    own || PROTECTED
        .iter()
        .any(|name| variable.eq_ignore_ascii_case(name))
}

/// The value of a header that ends with that of a variable.
pub(crate) fn completed(
    name: &str,
    value: &str,
    variable: &str,
    lookup: impl FnOnce(&str) -> Option<OsString>,
) -> Result<Vec<u8>, RequestError> {
    let names = || (name.to_owned(), variable.to_owned());
    if is_protected(variable) {
        let (name, variable) = names();
        return Err(RequestError::ProtectedVariable { name, variable });
    }
    let Some(found) = lookup(variable) else {
        let (name, variable) = names();
        return Err(RequestError::UnsetVariable { name, variable });
    };
    if found.is_empty() {
        let (name, variable) = names();
        return Err(RequestError::EmptyVariable { name, variable });
    }
    let mut whole = value.as_bytes().to_vec();
    whole.extend(found.into_vec());
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(variable: &str, value: Option<&str>) -> Result<Vec<u8>, String> {
        let lookup = |_: &str| value.map(OsString::from);
        completed("Authorization", "Bearer ", variable, lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn the_variable_comes_behind_the_value() {
        assert_eq!(asked("TOKEN", Some("abc")), Ok(b"Bearer abc".to_vec()));
    }

    #[test]
    fn nothing_is_not_enough() {
        let unset = "header Authorization requires executor environment variable TOKEN";
        assert_eq!(asked("TOKEN", None), Err(unset.to_owned()));
        let empty = "header Authorization requires a non-empty executor environment variable TOKEN";
        assert_eq!(asked("TOKEN", Some("")), Err(empty.to_owned()));
    }

    #[test]
    fn protected_names_are_refused_in_any_case_and_no_others() {
        for name in PROTECTED {
            assert!(is_protected(name) && is_protected(&name.to_lowercase()));
            let refusal = asked(name, Some("secret")).unwrap_err();
            let words =
                format!("header Authorization cannot use executor environment variable {name}");
            assert_eq!(refusal, words);
            assert!(!is_protected(&format!("{name}_2")), "{name}_2");
            assert!(!is_protected(&name[1..]), "{}", &name[1..]);
        }
        for own in ["OUTPOST_TOKEN", "outpost_token", "Outpost_"] {
            assert!(is_protected(own), "{own}");
        }
        for other in ["OUTPOST", "MY_OUTPOST_TOKEN", "GITHUB_TOKEN", "", "ÖÖÖÖÖÖÖ"] {
            assert!(!is_protected(other), "{other}");
        }
    }
}
