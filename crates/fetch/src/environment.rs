//! Headers with values from environment variables.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use crate::RequestError;

/// Variables with credentials of Outpost or of the client's product. A client may make requests from
/// this host, but must not send these credentials to a server of its choice.
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

/// Whether a variable must not be used for a header. Ignores case.
#[must_use]
pub fn is_protected(variable: &str) -> bool {
    let own = variable
        .get(..OWN_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX));
    own || PROTECTED
        .iter()
        .any(|name| variable.eq_ignore_ascii_case(name))
}

/// Returns the value of a header: `value`, followed by that of the variable.
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

    fn complete(variable: &str, value: Option<&str>) -> Result<Vec<u8>, String> {
        let lookup = |_: &str| value.map(OsString::from);
        completed("Authorization", "Bearer ", variable, lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn variable_follows_the_value() {
        assert_eq!(complete("TOKEN", Some("abc")), Ok(b"Bearer abc".to_vec()));
    }

    #[test]
    fn unset_and_empty_variables_are_rejected() {
        let unset = "header Authorization requires executor environment variable TOKEN";
        assert_eq!(complete("TOKEN", None), Err(unset.to_owned()));
        let empty = "header Authorization requires a non-empty executor environment variable TOKEN";
        assert_eq!(complete("TOKEN", Some("")), Err(empty.to_owned()));
    }

    #[test]
    fn only_protected_names_are_rejected_in_any_case() {
        for name in PROTECTED {
            assert!(is_protected(name) && is_protected(&name.to_lowercase()));
            let rejection = complete(name, Some("secret")).unwrap_err();
            let text =
                format!("header Authorization cannot use executor environment variable {name}");
            assert_eq!(rejection, text);
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
