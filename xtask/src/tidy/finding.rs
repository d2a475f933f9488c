//! One thing that isn't as it should be, and where.

use std::fmt;

use super::source::File;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    path: String,
    /// Counted from 1, as editors do.
    line: usize,
    /// What is wrong and why that is a rule.
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

/// The findings of a check as they are printed, for its tests.
#[cfg(test)]
pub(super) fn printed(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
