//! A violated rule with its position.

use std::fmt;

use super::source::File;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    /// The violation and the remedy.
    what: String,
}

impl Finding {
    pub(super) fn new(file: &File, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: file.path.clone(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Formats findings, for tests.
#[cfg(test)]
pub(super) fn printed(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
