//! Entries behind closed directories, which the server's user can't enter.
//!
//! Files behind a closed directory can't be inspected or used as mount points. But the owner of the
//! directory can open it with `chmod`, and a sandboxed process runs as the same user. So an entry behind a
//! closed directory is applied to the directory itself.

use std::path::{Path, PathBuf};

use super::{FileSystemView, PlanError, table::Table};
use crate::{Access, Origin, PathState, Rule, Warning, plan::is_kernel_path};

/// An entry behind a closed directory.
#[derive(Debug)]
pub(super) struct UnreachableEntry {
    pub(super) directory: PathBuf,
    /// The path of the entry; for a pattern, the directory itself.
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) origin: Origin,
}

impl UnreachableEntry {
    /// Returns the rule for the directory, if one is needed, and a warning.
    pub(super) fn to_rule(
        &self,
        table: &Table,
        view: &dyn FileSystemView,
    ) -> Result<(Option<Rule>, Option<Warning>), PlanError> {
        if self.origin == Origin::Glob && table.grants_below(&self.directory) {
            // A granted path below may match the pattern too.
            return Err(PlanError::Closed(self.directory.clone()));
        }
        let ours = view.is_ours(&self.directory);
        let covering = table.covering(&self.directory);
        let needs_rule = match covering.map(|rule| (rule.access, rule.path == self.directory)) {
            Some((Access::Deny, _)) => return Ok((None, None)),
            // The directory is granted but an entry in it can't be enforced.
            Some((Access::Write, true)) if ours => {
                return Err(PlanError::Closed(self.directory.clone()));
            }
            Some((Access::Write, false)) => ours || self.could_be_replaced(),
            // A process in this sandbox can't change the mode on a read-only mount. A process that was
            // started earlier could, and the directory would be open here too.
            Some((Access::Read, _)) => ours && self.access == Access::Deny,
            Some((Access::Write, true)) | None => false,
        };
        if !needs_rule {
            let warns = self.origin != Origin::Glob && self.access != Access::Write;
            return Ok((None, warns.then(|| Warning::OutOfReach(self.path.clone()))));
        }
        let access = match self.access {
            Access::Deny => Access::Deny,
            // Grants in it can't be reached, and protected names in it can't be masked.
            Access::Read | Access::Write => Access::Read,
        };
        let directory = self.directory.clone();
        let rule = Rule::new(directory, access, PathState::Directory, self.origin);
        let warning = Warning::Closed {
            path: self.path.clone(),
            closed: self.directory.clone(),
        };
        Ok((Some(rule), Some(warning)))
    }

    /// Returns whether the directory could be renamed and replaced by one with another file at the path,
    /// which is possible even if another user owns it. For a pattern it doesn't matter: the next scan
    /// finds the file.
    fn could_be_replaced(&self) -> bool {
        let named = self.origin != Origin::Glob && self.access != Access::Write;
        named && !is_kernel_path(&self.directory)
    }
}

/// Returns the entry for a directory that a scan could not read: anything in it may match.
pub(super) fn from_pattern(directory: &Path) -> UnreachableEntry {
    UnreachableEntry {
        directory: directory.to_owned(),
        path: directory.to_owned(),
        access: Access::Deny,
        origin: Origin::Glob,
    }
}
