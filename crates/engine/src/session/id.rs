//! Session ids.

use std::fmt;

/// An unguessable session id. `Debug` and `Display` show only its prefix, because the whole
/// id grants access to the session.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    pub(crate) fn random() -> Self {
        SessionId(uuid::Uuid::new_v4().to_string())
    }

    /// An unverified id from a client.
    pub(crate) fn claimed(text: &str) -> Self {
        SessionId(text.to_owned())
    }

    /// The whole id. Only for the client that owns the session.
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
    fn only_prefix_is_shown() {
        let id = SessionId::random();
        assert_eq!(id.reveal().len(), 36);
        assert_eq!(format!("{id} {id:?}").matches(&id.reveal()[..8]).count(), 2);
        assert!(!format!("{id}{id:?}").contains(&id.reveal()[..9]));
    }
}
