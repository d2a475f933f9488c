//! What a process is to be confined to, said pleasantly.

use std::path::{Path, PathBuf};

use outpost_engine::sandbox::{
    Access, Network,
    policy::{Entry, FileSystem, Missing, Place, Policy, Restricted, Special, Workspace},
};
use outpost_protocol::{
    FileSystemAccess, FileSystemEntry, FileSystemPath, FileSystemPermissions, MissingPathBehavior,
    NetworkAccess, PathUri, Permissions, SandboxParams, SpecialPath,
};

/// What a process may do. It can't do anything else: not read, write or run
/// other files, not use the network unless that is granted, and not see or
/// signal processes outside. A place that can't enforce all of it doesn't start
/// the process.
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
/// The most specific path decides, whatever the order; of the same path `deny`
/// goes before `write` before `read`. Directly under what may be written,
/// `.git`, `.agents`, `.codex` and `.aws` are read-only unless they are granted
/// by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    policy: Policy,
}

impl Sandbox {
    /// Everything may be read, nothing written, and there is no network.
    #[must_use]
    pub fn read_only(cwd: impl AsRef<Path>) -> Self {
        Policy::read_only(cwd.as_ref()).into()
    }

    /// Everything may be read; this directory, `/tmp` and `$TMPDIR` may be
    /// written. There is no network.
    #[must_use]
    pub fn workspace(root: impl AsRef<Path>) -> Self {
        Workspace::default().policy(root.as_ref()).into()
    }

    /// What a dynamic program needs to run, and nothing else: libraries, the
    /// loader, certificates and time zones can be read.
    #[must_use]
    pub fn minimal(cwd: impl AsRef<Path>) -> Self {
        let minimal = Entry::new(Place::Special(Special::Minimal), Access::Read);
        Sandbox {
            policy: Policy {
                file_system: FileSystem::Restricted(Restricted {
                    entries: vec![minimal],
                    glob_scan_max_depth: None,
                }),
                network: Network::Restricted,
                cwd: cwd.as_ref().to_owned(),
                workspace_roots: vec![cwd.as_ref().to_owned()],
            },
        }
    }

    /// This path, and what is below it, may be read.
    #[must_use]
    pub fn read(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::new(Place::Path(path.into()), Access::Read))
    }

    /// This path, and what is below it, may be read and written. It has to
    /// exist.
    #[must_use]
    pub fn write(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::new(Place::Path(path.into()), Access::Write))
    }

    /// This path, and what is below it, is out of reach, and if it doesn't exist
    /// it can't be created.
    #[must_use]
    pub fn deny(self, path: impl Into<PathBuf>) -> Self {
        self.with(Entry::new(Place::Path(path.into()), Access::Deny))
    }

    /// What matches this pattern when the process starts is out of reach. `*` and
    /// `?` stay within a name, `**` doesn't; a relative pattern starts at the
    /// directory that the sandbox was made for.
    #[must_use]
    pub fn deny_matching(self, pattern: impl Into<String>) -> Self {
        self.with(Entry::new(Place::Pattern(pattern.into()), Access::Deny))
    }

    /// The network of the place may be used.
    #[must_use]
    pub fn network(mut self) -> Self {
        self.policy.network = Network::Enabled;
        self
    }

    /// The same for work in another directory: what is said of the workspace is
    /// said of that one.
    #[must_use]
    pub fn moved_to(mut self, cwd: impl AsRef<Path>) -> Self {
        self.policy.cwd = cwd.as_ref().to_owned();
        self.policy.workspace_roots = vec![cwd.as_ref().to_owned()];
        self
    }

    /// The same in the engine's words.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn with(mut self, entry: Entry) -> Self {
        match &mut self.policy.file_system {
            FileSystem::Restricted(files) => files.entries.push(entry),
            // What restricts something has something to restrict.
            FileSystem::Unrestricted => {
                let everything = Entry::new(Place::Special(Special::Root), Access::Write);
                self.policy.file_system = FileSystem::Restricted(Restricted {
                    entries: vec![everything, entry],
                    glob_scan_max_depth: None,
                });
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
        let policy = sandbox.policy;
        let roots = policy.workspace_roots.iter();
        SandboxParams {
            permissions: Permissions::Managed {
                file_system: files(policy.file_system),
                network: match policy.network {
                    Network::Restricted => NetworkAccess::Restricted,
                    Network::Enabled => NetworkAccess::Enabled,
                },
            },
            cwd: Some(PathUri::from_path(&policy.cwd)),
            workspace_roots: roots.map(|root| PathUri::from_path(root)).collect(),
            windows_sandbox_level: None,
            use_legacy_landlock: false,
        }
    }
}

fn files(files: FileSystem) -> FileSystemPermissions {
    match files {
        FileSystem::Unrestricted => FileSystemPermissions::Unrestricted,
        FileSystem::Restricted(files) => FileSystemPermissions::Restricted {
            entries: files.entries.into_iter().map(entry).collect(),
            glob_scan_max_depth: files
                .glob_scan_max_depth
                .map(|depth| u64::try_from(depth).unwrap_or(u64::MAX)),
        },
    }
}

fn entry(entry: Entry) -> FileSystemEntry {
    FileSystemEntry {
        path: match entry.place {
            Place::Path(path) => FileSystemPath::Path {
                path: PathUri::from_path(&path),
            },
            Place::Special(special) => FileSystemPath::Special {
                value: special_path(special),
            },
            Place::Pattern(pattern) => FileSystemPath::GlobPattern { pattern },
        },
        access: match entry.access {
            Access::Read => FileSystemAccess::Read,
            Access::Write => FileSystemAccess::Write,
            Access::Deny => FileSystemAccess::Deny,
        },
        missing_path_behavior: match entry.missing {
            Missing::Matters => None,
            Missing::Skip => Some(MissingPathBehavior::Skip),
        },
    }
}

fn special_path(special: Special) -> SpecialPath {
    match special {
        Special::Root => SpecialPath::Root,
        Special::Minimal => SpecialPath::Minimal,
        Special::ProjectRoots { below } => SpecialPath::ProjectRoots {
            subpath: Some(below).filter(|below| !below.as_os_str().is_empty()),
        },
        Special::Tmpdir => SpecialPath::Tmpdir,
        Special::SlashTmp => SpecialPath::SlashTmp,
        Special::Unknown(path) => SpecialPath::Unknown {
            path,
            subpath: None,
        },
    }
}
