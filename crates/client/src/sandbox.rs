//! Sandboxes for processes and file operations.

use std::path::{Path, PathBuf};

use outpost_protocol::{PathUri, SandboxParams, SandboxPermissions};
use outpost_types::sandbox::{Access, Entry, EntryPath, FileSystem, Network, Policy, SpecialPath};

/// Restricts what a process may access. Everything that is not granted is denied: other files, the
/// network, and processes outside the sandbox. An executor that can't enforce a sandbox does not
/// start the process.
///
/// ```
/// # use outpost_client::{Sandbox, Start};
/// let start = Start::new(["cargo", "test"])
///     .cwd("/srv/project")
///     .sandbox(
///         Sandbox::workspace("/srv/project")
///             .write("/srv/cache")
///             .deny("/srv/project/secrets")
///             .deny_matching("**/*.pem"),
///     );
/// ```
///
/// The most specific path decides, whatever the order. For the same path, `deny` takes precedence
/// over `write`, and `write` over `read`. Directly below a writable directory, `.git`, `.agents`,
/// `.codex` and `.aws` are read-only unless they are granted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    policy: Policy,
}

impl Sandbox {
    /// Allows reading everything. No writing, no network.
    #[must_use]
    pub fn read_only(cwd: impl AsRef<Path>) -> Self {
        Policy::read_only(cwd.as_ref()).into()
    }

    /// Allows reading everything, and writing to this directory, `/tmp` and `$TMPDIR`. No network.
    #[must_use]
    pub fn workspace(root: impl AsRef<Path>) -> Self {
        let roots = SpecialPath::ProjectRoots { subpath: None };
        Sandbox::restricted(
            root.as_ref(),
            vec![
                Entry::special(SpecialPath::Root, Access::Read),
                Entry::special(roots, Access::Write),
                Entry::special(SpecialPath::SlashTmp, Access::Write),
                Entry::special(SpecialPath::Tmpdir, Access::Write),
            ],
        )
    }

    /// Allows reading what a dynamically linked program needs: libraries, the loader,
    /// certificates and time zones. No writing, no network.
    #[must_use]
    pub fn minimal(cwd: impl AsRef<Path>) -> Self {
        let minimal = Entry::special(SpecialPath::Minimal, Access::Read);
        Sandbox::restricted(cwd.as_ref(), vec![minimal])
    }

    fn restricted(cwd: &Path, entries: Vec<Entry>) -> Self {
        Sandbox {
            policy: Policy {
                file_system: FileSystem::restricted(entries),
                network: Network::Restricted,
                cwd: cwd.to_owned(),
                workspace_roots: vec![cwd.to_owned()],
            },
        }
    }

    /// Allows reading this path and everything below it.
    #[must_use]
    pub fn read(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::path(path, Access::Read))
    }

    /// Allows reading and writing this path and everything below it. It must exist.
    #[must_use]
    pub fn write(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::path(path, Access::Write))
    }

    /// Denies access to this path and everything below it. If it does not exist, it can't be
    /// created.
    #[must_use]
    pub fn deny(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::path(path, Access::Deny))
    }

    /// Denies access to paths that match this pattern when the process starts. `*` and `?` match
    /// within a name, `**` across directories. A relative pattern starts at the directory that the
    /// sandbox was created for.
    #[must_use]
    pub fn deny_matching(self, pattern: impl Into<String>) -> Self {
        self.with(Entry::pattern(pattern, Access::Deny))
    }

    /// Allows using the host's network.
    #[must_use]
    pub fn network(mut self) -> Self {
        self.policy.network = Network::Enabled;
        self
    }

    /// Moves the sandbox to another working directory, which becomes the workspace.
    #[must_use]
    pub fn moved_to(mut self, cwd: impl AsRef<Path>) -> Self {
        self.policy.cwd = cwd.as_ref().to_owned();
        self.policy.workspace_roots = vec![cwd.as_ref().to_owned()];
        self
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn with(mut self, entry: Entry) -> Self {
        match &mut self.policy.file_system {
            FileSystem::Restricted(files) => files.entries.push(entry),
            FileSystem::Unrestricted => {
                let everything = Entry::special(SpecialPath::Root, Access::Write);
                self.policy.file_system = FileSystem::restricted(vec![everything, entry]);
            }
        }
        self
    }
}

impl From<Policy> for Sandbox {
    fn from(policy: Policy) -> Self {
        Sandbox { policy }
    }
}

impl From<Sandbox> for SandboxParams {
    fn from(sandbox: Sandbox) -> Self {
        let Policy {
            mut file_system,
            network,
            cwd,
            workspace_roots,
        } = sandbox.policy;
        // A local executor has to see the same normalized paths as a server.
        if let FileSystem::Restricted(files) = &mut file_system {
            for entry in &mut files.entries {
                if let EntryPath::Path { path } = &mut entry.path {
                    *path = PathUri::from_path(path).into_path();
                }
            }
        }
        let roots = workspace_roots.iter();
        SandboxParams {
            permissions: SandboxPermissions::Managed {
                file_system,
                network,
            },
            cwd: Some(PathUri::from_path(&cwd)),
            workspace_roots: roots.map(|root| PathUri::from_path(root)).collect(),
            windows_sandbox_level: None,
            use_legacy_landlock: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(policy: Policy) -> Option<Policy> {
        SandboxParams::from(Sandbox::from(policy)).into_policy(Path::new("/elsewhere"))
    }

    #[test]
    fn params_carry_the_whole_policy() {
        let mut policy = Sandbox::workspace("/srv/project")
            .read("/opt")
            .write("/srv/cache")
            .deny("/srv/project/secrets")
            .deny_matching("**/*.pem")
            .network()
            .policy()
            .clone();
        if let FileSystem::Restricted(files) = &mut policy.file_system {
            files.glob_scan_max_depth = Some(7);
            let unknown = SpecialPath::Unknown {
                path: ":x".to_owned(),
                subpath: None,
            };
            let docs = SpecialPath::below_project_roots("docs");
            let special = [SpecialPath::Minimal, unknown, docs];
            let special = special.map(|path| Entry::special(path, Access::Deny).skip_missing());
            files.entries.extend(special);
        }
        let unrestricted = Policy {
            file_system: FileSystem::Unrestricted,
            ..policy.clone()
        };
        for policy in [policy, unrestricted] {
            assert_eq!(understood(policy.clone()), Some(policy));
        }
    }

    #[test]
    fn params_normalize_paths() {
        let policy = Sandbox::read_only("/srv").read("/opt/../srv/./x");
        let normal = Sandbox::read_only("/srv").read("/srv/x");
        assert_eq!(understood(policy.policy), Some(normal.policy));
    }
}
