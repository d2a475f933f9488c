//! What all operations share.

use crate::Limits;

/// The operations on files, within limits. It holds nothing open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files {
    pub(crate) limits: Limits,
    pub(crate) means: Means,
}

/// What becomes of symbolic links in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// They are followed, as everybody does.
    #[default]
    Follow,
    /// A path with one in it is refused, wherever it is.
    Refuse,
}

/// How links are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Means {
    /// The kernel does it, and where it can't, the path is walked.
    #[default]
    Kernel,
    /// The path is walked, descriptor by descriptor.
    Walk,
}

impl Files {
    /// Operations within these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Files {
            limits,
            means: Means::default(),
        }
    }

    /// The same, refusing links by these means.
    #[must_use]
    pub fn by(self, means: Means) -> Self {
        Files { means, ..self }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}
