//! Rejects symbolic links that a sandboxed process may have planted.

use std::path::Path;

use super::{GrantedRoots, LinkCreator, PlanError, Planner, ServerPaths};

impl Planner<'_> {
    /// Rejects links that a sandboxed process could replace in this plan, or could have replaced in an earlier
    /// one: the next process would be granted another path.
    pub(super) fn check_links(&mut self, server: &ServerPaths<'_>) -> Result<(), PlanError> {
        if self.checked_links.is_empty() {
            return Ok(());
        }
        let granted = (server.granted)()?;
        for (link, path) in std::mem::take(&mut self.checked_links) {
            if self.table.is_writable(&link) {
                return Err(PlanError::LinkInWritable { link, path });
            }
            match self.creator(&link)? {
                LinkCreator::OurUser if self.is_changed(&link, &granted)? => {
                    return Err(PlanError::LinkInGranted { link, path });
                }
                LinkCreator::OtherUser => return Err(PlanError::OtherUsersLink { link, path }),
                LinkCreator::OurUser | LinkCreator::Owner => {}
            }
        }
        Ok(())
    }

    /// Returns whether a link, or a directory above it that our user can rename, was changed after the first
    /// grant of a directory that it is in. Creating or renaming it sets its change time, which no process can
    /// set back.
    fn is_changed(&self, link: &Path, granted: &GrantedRoots) -> Result<bool, PlanError> {
        for path in link.ancestors() {
            let Some(since) = granted.first_grant_above(path) else {
                // Nor are the directories above in a granted one.
                break;
            };
            let is_replaceable = path == link || self.creator(path)? != LinkCreator::Owner;
            if is_replaceable && self.change_time(path)? >= since {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn change_time(&self, path: &Path) -> Result<std::time::SystemTime, PlanError> {
        self.view.change_time(path).map_err(|error| {
            let path = path.to_owned();
            PlanError::Inspect { path, error }
        })
    }
}
