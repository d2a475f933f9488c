//! The receiver of all operations.

use serde::{Deserialize, Serialize};

use crate::Limits;

/// The file operations with their limits. Holds no open files.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Files {
    pub(crate) limits: Limits,
    pub(crate) symlink_check: SymlinkCheck,
}

/// How paths with symbolic links are detected when they are to be rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymlinkCheck {
    /// With `openat2`; falls back to `Walk` if the kernel lacks it or a seccomp filter blocks it.
    #[default]
    Kernel,
    /// By opening the path component by component.
    Walk,
}

impl Files {
    /// Operations with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Files {
            limits,
            symlink_check: SymlinkCheck::default(),
        }
    }

    /// Selects how symbolic links are detected.
    #[must_use]
    pub fn with_symlink_check(self, symlink_check: SymlinkCheck) -> Self {
        Files {
            symlink_check,
            ..self
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
