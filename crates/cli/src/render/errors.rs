//! Formats errors for people.

use std::sync::Arc;

use outpost_client::{DialError, Error};

/// An error with its causes. A repeated cause is left out.
pub(crate) fn message(error: &anyhow::Error) -> String {
    chain_message(error.as_ref())
}

/// Like [`message`], for any error type.
pub(crate) fn chain_message(error: &(dyn std::error::Error + 'static)) -> String {
    let mut chain = String::new();
    for cause in std::iter::successors(Some(error), |error| error.source()) {
        let message = match (cause.downcast_ref::<Error>(), cause.downcast_ref()) {
            (Some(error), _) => client_message(error),
            (None, Some(error)) => dial_message(error),
            (None, None) => cause.to_string(),
        };
        if chain.is_empty() {
            chain = message;
        } else if !chain.ends_with(&message) {
            chain = format!("{chain}: {message}");
        }
    }
    chain
}

/// A client error without the wire's error codes.
pub(crate) fn client_message(error: &Error) -> String {
    match error {
        Error::Rejected { message, .. } | Error::StartFailed { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// An error of a connection, with the flags that are a remedy.
fn dial_message(error: &Arc<DialError>) -> String {
    match **error {
        DialError::Unauthorized {
            status: 401,
            had_token: false,
            ..
        } => format!("{error} (OUTPOST_TOKEN or --token-file)"),
        DialError::UntrustedCertificate { ref found } => format!(
            "the server's certificate is not from a trusted authority; use --ca FILE of its authority, or, if its \
             operator confirms this fingerprint, --fingerprint {found}"
        ),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use outpost_client::ErrorKind;

    use super::*;

    #[test]
    fn error_codes_and_repeated_causes_are_left_out() {
        let refused = Error::Rejected {
            code: -32602,
            kind: ErrorKind::InvalidParams,
            errno: None,
            message: "detachedTtlMs is too long".to_owned(),
        };
        let error = Err::<(), _>(refused)
            .context("cannot start it")
            .unwrap_err();
        assert_eq!(
            message(&error),
            "cannot start it: detachedTtlMs is too long"
        );
        let inner = std::io::Error::other("no way");
        let error = anyhow::Error::new(inner).context("there is no way");
        assert_eq!(message(&error), "there is no way");
    }
}
