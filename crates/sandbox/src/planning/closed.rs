//! Directories that let nobody through who runs as we do.
//!
//! What is behind one can't be looked at, nor can anything be mounted over it. But whoever owns it
//! opens it with a `chmod`, and a confined process runs as we do. So what was asked for in a closed
//! directory is kept at the directory itself, which is the nearest thing that can be kept.

use std::path::{Path, PathBuf};

use super::{PlanError, View, table::Table};
use crate::{Access, Presence, Rule, Warning, Why};

/// What the kernel shows of itself is fresh inside, and nobody's to rename.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Something that was asked for behind a closed directory.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) directory: PathBuf,
    /// What was asked for; a pattern means anything that is there.
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) why: Why,
}

impl Closed {
    /// What has to be kept of the directory, if anything, and what is worth a word.
    pub(super) fn keep(
        &self,
        table: &Table,
        view: &dyn View,
    ) -> Result<(Option<Rule>, Option<Warning>), PlanError> {
        if self.why == Why::Glob && table.grants_below(&self.directory) {
            // What is granted there may match as well, and nobody has looked.
            return Err(PlanError::Closed(self.directory.clone()));
        }
        let ours = view.is_ours(&self.directory);
        let covering = table.covering(&self.directory);
        let kept = match covering.map(|rule| (rule.access, rule.path == self.directory)) {
            Some((Access::Deny, _)) => return Ok((None, None)),
            // It was granted, and something in it was not.
            Some((Access::Write, true)) if ours => {
                return Err(PlanError::Closed(self.directory.clone()));
            }
            Some((Access::Write, false)) => ours || self.could_be_replaced(),
            // Nobody opens what is read-only inside; but another process may, which was started
            // before, and then it would be open here as well.
            Some((Access::Read, _)) => ours && self.access == Access::Deny,
            Some((Access::Write, true)) | None => false,
        };
        if !kept {
            let told = self.why != Why::Glob && self.access != Access::Write;
            return Ok((None, told.then(|| Warning::OutOfReach(self.path.clone()))));
        }
        let rule = Rule {
            path: self.directory.clone(),
            access: match self.access {
                Access::Deny => Access::Deny,
                // What is granted in it can't be reached, and names that are protected there can't
                // be seen to.
                Access::Read | Access::Write => Access::Read,
            },
            presence: Presence::Directory,
            identity: None,
            why: self.why,
        };
        let warning = Warning::Closed {
            path: self.path.clone(),
            closed: self.directory.clone(),
        };
        Ok((Some(rule), Some(warning)))
    }

    /// Whether it could be moved aside for a directory with something else at the path. It need not
    /// be ours for that. A pattern would find it there the next time.
    fn could_be_replaced(&self) -> bool {
        let named = self.why != Why::Glob && self.access != Access::Write;
        named && !KERNEL.iter().any(|path| self.directory.starts_with(path))
    }
}

/// What a scan could not look into: anything there may be meant.
pub(super) fn by_a_pattern(directory: &Path) -> Closed {
    Closed {
        directory: directory.to_owned(),
        path: directory.to_owned(),
        access: Access::Deny,
        why: Why::Glob,
    }
}
