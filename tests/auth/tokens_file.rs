//! A file of named tokens.

use std::path::Path;

use tempfile::TempDir;

use super::new_token;

/// A file of named tokens in a directory of its own.
pub(super) struct TokensFile {
    directory: TempDir,
    path: String,
}

impl TokensFile {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tokens.toml").display().to_string();
        TokensFile { directory, path }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a token.
    pub(super) async fn create(&self, name: &str, more: &[&str]) -> String {
        new_token(&self.path, name, more).await
    }
}
