//! Tests configuration from files, variables and flags, and the commands that show it.

mod errors;
mod precedence;
mod read;
mod show;

use std::path::{Path, PathBuf};

use outpost_testkit::ServerCommand;

use crate::outpost;

/// A user with a private configuration directory.
struct User {
    dir: tempfile::TempDir,
}

impl User {
    /// Creates a user with this text in `outpost.toml`.
    fn with_file(text: &str) -> Self {
        let user = Self::new();
        std::fs::create_dir(user.dir.path().join("outpost")).expect("a directory");
        std::fs::write(user.file(), text).expect("a file");
        user
    }

    /// Creates a user without a configuration file.
    fn new() -> Self {
        User {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("outpost/outpost.toml")
    }

    /// The program under test, run by this user.
    fn outpost(&self) -> ServerCommand {
        outpost()
            .env("OUTPOST_CONFIG", "")
            .env("XDG_CONFIG_HOME", text(self.dir.path()))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}
