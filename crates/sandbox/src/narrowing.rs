//! Narrows a policy to directories, for file operations of a principal with roots.

use std::path::{Path, PathBuf};

use crate::policy::{Entry, EntryPath, FileSystem, Policy, Restricted, SpecialPath};
use crate::{Access, Network};

/// The directories that file operations are restricted to, whatever their policy grants.
#[derive(Clone, Debug)]
pub struct WithinRoots {
    /// The directories.
    pub roots: Vec<BoundingRoot>,
    /// The policy that grants these directories and nothing else.
    pub policy: Policy,
}

/// A directory that file operations are restricted to.
#[derive(Clone, Debug)]
pub struct BoundingRoot {
    /// Its path, which may lead through symbolic links.
    pub named: PathBuf,
    /// Its path without symbolic links.
    pub real: PathBuf,
}

impl WithinRoots {
    /// Returns the part of a policy that concerns these directories. Paths are compared as they are written:
    /// where links make a difference, the plan of the result has to be compared with those of both policies.
    pub(crate) fn narrow(&self, policy: &Policy, tmpdir: Option<&Path>) -> Policy {
        let file_system = match &policy.file_system {
            FileSystem::Unrestricted => self.policy.file_system.clone(),
            FileSystem::Restricted(files) => FileSystem::Restricted(Restricted {
                entries: self.entries(&files.entries, &policy.workspace_roots, tmpdir),
                ..files.clone()
            }),
        };
        Policy {
            file_system,
            // A file operation has none.
            network: Network::Restricted,
            ..policy.clone()
        }
    }

    fn entries(
        &self,
        entries: &[Entry],
        workspace_roots: &[PathBuf],
        tmpdir: Option<&Path>,
    ) -> Vec<Entry> {
        let paths = |entry: &Entry| paths_of(entry, workspace_roots, tmpdir);
        let mut narrowed = Vec::new();
        for root in &self.roots {
            let above = entries.iter().flat_map(|entry| {
                let above = paths(entry).into_iter();
                let above = above.filter(|path| root.real.starts_with(path));
                above.map(|path| (path.components().count(), entry.access))
            });
            if let Some((_, access)) = above.max() {
                let entry = |path: &PathBuf| Entry::path(path.clone(), access).skip_missing();
                narrowed.push(entry(&root.real));
                // With the symbolic links on the way to it.
                let named = Some(&root.named).filter(|named| **named != root.real);
                narrowed.extend(named.map(entry));
            }
        }
        let is_inside = |path: &PathBuf| self.roots.iter().any(|root| path.starts_with(&root.real));
        // Denials grant nothing.
        let kept = entries
            .iter()
            .filter(|entry| entry.access == Access::Deny || paths(entry).iter().any(is_inside));
        narrowed.extend(kept.cloned());
        narrowed
    }
}

/// Returns the paths of an entry, none for patterns and for the minimal paths.
fn paths_of(entry: &Entry, workspace_roots: &[PathBuf], tmpdir: Option<&Path>) -> Vec<PathBuf> {
    match &entry.path {
        EntryPath::Path { path } => vec![path.clone()],
        EntryPath::GlobPattern { .. } => Vec::new(),
        EntryPath::Special { value } => match value {
            SpecialPath::Root => vec![PathBuf::from("/")],
            SpecialPath::SlashTmp => vec![PathBuf::from("/tmp")],
            SpecialPath::Tmpdir => tmpdir.map(Path::to_owned).into_iter().collect(),
            SpecialPath::ProjectRoots { subpath } => {
                let below = |root: &PathBuf| match subpath {
                    Some(subpath) => root.join(subpath),
                    None => root.clone(),
                };
                workspace_roots.iter().map(below).collect()
            }
            SpecialPath::Minimal | SpecialPath::Unknown { .. } => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(entries: Vec<Entry>) -> Policy {
        Policy {
            file_system: FileSystem::restricted(entries),
            network: Network::Restricted,
            cwd: PathBuf::from("/"),
            workspace_roots: vec![PathBuf::from("/srv/ci")],
        }
    }

    fn narrowed(entries: Vec<Entry>) -> Vec<String> {
        let within = WithinRoots {
            roots: vec![BoundingRoot {
                named: "/ci".into(),
                real: "/srv/ci".into(),
            }],
            policy: policy(vec![Entry::path("/srv/ci", Access::Write)]),
        };
        let narrowed = within.narrow(&policy(entries), Some(Path::new("/srv/ci/tmp")));
        let FileSystem::Restricted(files) = narrowed.file_system else {
            panic!("the policy is restricted");
        };
        let line = |entry: &Entry| format!("{} {}", entry.access.as_str(), entry.path);
        files.entries.iter().map(line).collect()
    }

    #[test]
    fn grants_outside_are_removed() {
        let entries = vec![
            Entry::special(SpecialPath::Root, Access::Read),
            Entry::special(SpecialPath::project_roots(), Access::Write),
            Entry::special(SpecialPath::SlashTmp, Access::Write),
            Entry::special(SpecialPath::Tmpdir, Access::Write),
            Entry::special(SpecialPath::Minimal, Access::Read),
            Entry::path("/srv", Access::Write),
            Entry::path("/srv/ci/docs", Access::Read),
            Entry::path("/etc", Access::Deny),
            Entry::pattern("**/*.pem", Access::Deny),
        ];
        assert_eq!(
            narrowed(entries),
            [
                "write /srv/ci",
                "write /ci",
                "write :project_roots",
                "write :tmpdir",
                "read /srv/ci/docs",
                "deny /etc",
                "deny **/*.pem",
            ]
        );
    }

    #[test]
    fn root_has_the_access_of_the_most_specific_entry_above() {
        for (above, expected) in [
            ([Access::Write, Access::Read], "read"),
            ([Access::Read, Access::Write], "write"),
            ([Access::Write, Access::Deny], "deny"),
        ] {
            let [root, srv] = above;
            let entries = vec![Entry::path("/", root), Entry::path("/srv", srv)];
            let narrowed = narrowed(entries);
            assert_eq!(narrowed[0], format!("{expected} /srv/ci"));
        }
        assert_eq!(narrowed(vec![Entry::path("/home", Access::Read)]), [""; 0]);
    }
}
