//! Access scopes: kinds of work that a principal may be permitted.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of work that a principal may be permitted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(remote = "Self")]
pub enum AccessScope {
    /// Start, read, write to, signal and end processes.
    #[serde(rename = "exec")]
    Exec,
    /// Read files, directories and their metadata.
    #[serde(rename = "files:read")]
    FilesRead,
    /// Create, change and remove files.
    #[serde(rename = "files:write")]
    FilesWrite,
    /// Make HTTP requests from the server's host.
    #[serde(rename = "http")]
    Http,
    /// Watch files for changes.
    #[serde(rename = "watch")]
    Watch,
    /// See and end the work of all principals.
    #[serde(rename = "admin")]
    Admin,
}

crate::string_enum!(AccessScope);

/// Error of parsing an [`AccessScope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected exec, files:read, files:write, http, watch or admin")]
pub struct ParseAccessScopeError;

impl AccessScope {
    /// Every scope.
    pub const ALL: [AccessScope; 6] = [
        AccessScope::Exec,
        AccessScope::FilesRead,
        AccessScope::FilesWrite,
        AccessScope::Http,
        AccessScope::Watch,
        AccessScope::Admin,
    ];
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Serialize::serialize(self, f)
    }
}

impl FromStr for AccessScope {
    type Err = ParseAccessScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL
            .into_iter()
            .find(|scope| scope.to_string() == text);
        named.ok_or(ParseAccessScopeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_parse_as_they_are_printed() {
        for scope in AccessScope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert_eq!("root".parse::<AccessScope>(), Err(ParseAccessScopeError));
    }
}
