//! Errors, in words for people.

use outpost_client::Error;

/// An error with its causes, each said once.
pub(crate) fn of(error: &anyhow::Error) -> String {
    of_error(error.as_ref())
}

/// The same of one that is somebody else's.
pub(crate) fn of_error(error: &(dyn std::error::Error + 'static)) -> String {
    let mut said = String::new();
    for cause in std::iter::successors(Some(error), |error| error.source()) {
        let words = match cause.downcast_ref::<Error>() {
            Some(error) => of_client(error),
            None => cause.to_string(),
        };
        if said.is_empty() {
            said = words;
        } else if !said.ends_with(&words) {
            said = format!("{said}: {words}");
        }
    }
    said
}

/// What a place says. The numbers of the wire are for programs.
pub(crate) fn of_client(error: &Error) -> String {
    match error {
        Error::Refused { message, .. } | Error::StartFailed { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn numbers_of_the_wire_are_left_out_and_nothing_is_said_twice() {
        let refused = Error::Refused {
            code: -32602,
            message: "detachedTtlMs is too long".to_owned(),
        };
        let error = Err::<(), _>(refused)
            .context("cannot start it")
            .unwrap_err();
        assert_eq!(of(&error), "cannot start it: detachedTtlMs is too long");
        let inner = std::io::Error::other("no way");
        let error = anyhow::Error::new(inner).context("there is no way");
        assert_eq!(of(&error), "there is no way");
    }
}
