//! The name of a session.

use std::fmt;

/// The unguessable name of a session. `Debug` and `Display` show its beginning
/// only, because who knows it whole may resume the session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    pub(crate) fn random() -> Self {
        SessionId(uuid::Uuid::new_v4().to_string())
    }

    /// What a client says is the name of a session; it may be anything.
    pub(crate) fn claimed(text: &str) -> Self {
        SessionId(text.to_owned())
    }

    /// The whole id: for the client it belongs to, and nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(8).collect();
        write!(f, "{shown}…")
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_is_shown() {
        let id = SessionId::random();
        assert_eq!(id.reveal().len(), 36);
        assert_eq!(format!("{id} {id:?}").matches(&id.reveal()[..8]).count(), 2);
        assert!(!format!("{id}{id:?}").contains(&id.reveal()[..9]));
    }
}
