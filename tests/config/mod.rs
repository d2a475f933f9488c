//! Files, variables and flags; what is shown of them, and what is told.

mod mistakes;
mod precedence;
mod read;
mod show;

use std::path::{Path, PathBuf};

use outpost_testkit::Launch;

use crate::outpost;

/// A user with a configuration folder of their own.
struct User {
    folder: tempfile::TempDir,
}

impl User {
    /// Whose `outpost.toml` has this text.
    fn with_file(text: &str) -> Self {
        let user = Self::new();
        std::fs::create_dir(user.folder.path().join("outpost")).expect("a folder");
        std::fs::write(user.file(), text).expect("a file");
        user
    }

    /// Who has no file.
    fn new() -> Self {
        User {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("outpost/outpost.toml")
    }

    /// The program, run by this user.
    fn outpost(&self) -> Launch {
        outpost()
            .env("OUTPOST_CONFIG", "")
            .env("XDG_CONFIG_HOME", text(self.folder.path()))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
