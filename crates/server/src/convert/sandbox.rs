//! What a process is to be confined to, in their words and in ours.

use std::path::Path;

use outpost_engine::sandbox::{
    Access, Level, Means, Network, Unenforceable,
    policy::{Entry, FileSystem, Missing, Place, Policy, Restricted, Special},
};
use outpost_protocol as wire;

/// The policy that a sandbox asks us to enforce, for a process that starts in `cwd`. None if it asks
/// for nothing, or somebody else for it.
pub(crate) fn sandbox(sandbox: &wire::SandboxParams, cwd: &Path) -> Option<Policy> {
    let wire::Permissions::Managed {
        file_system,
        network: access,
    } = &sandbox.permissions
    else {
        return None;
    };
    let own = sandbox.cwd.as_ref().map(wire::PathUri::as_path);
    let roots = sandbox.workspace_roots.iter();
    Some(Policy {
        file_system: files(file_system),
        network: network(*access),
        cwd: own.unwrap_or(cwd).to_owned(),
        workspace_roots: roots.map(|root| root.as_path().to_owned()).collect(),
    })
}

pub(crate) fn network(access: wire::NetworkAccess) -> Network {
    match access {
        wire::NetworkAccess::Restricted => Network::Restricted,
        wire::NetworkAccess::Enabled => Network::Enabled,
    }
}

fn files(permissions: &wire::FileSystemPermissions) -> FileSystem {
    match permissions {
        wire::FileSystemPermissions::Unrestricted => FileSystem::Unrestricted,
        wire::FileSystemPermissions::Restricted {
            entries,
            glob_scan_max_depth,
        } => FileSystem::Restricted(Restricted {
            entries: entries.iter().map(entry).collect(),
            glob_scan_max_depth: glob_scan_max_depth
                .map(|depth| usize::try_from(depth).unwrap_or(usize::MAX)),
        }),
    }
}

fn entry(entry: &wire::FileSystemEntry) -> Entry {
    Entry {
        place: match &entry.path {
            wire::FileSystemPath::Path { path } => Place::Path(path.as_path().to_owned()),
            wire::FileSystemPath::Special { value } => Place::Special(special(value)),
            wire::FileSystemPath::GlobPattern { pattern } => Place::Pattern(pattern.clone()),
        },
        access: match entry.access {
            wire::FileSystemAccess::Read => Access::Read,
            wire::FileSystemAccess::Write => Access::Write,
            wire::FileSystemAccess::Deny => Access::Deny,
        },
        missing: match entry.missing_path_behavior {
            Some(wire::MissingPathBehavior::Skip) => Missing::Skip,
            None => Missing::Matters,
        },
    }
}

fn special(path: &wire::SpecialPath) -> Special {
    match path {
        wire::SpecialPath::Root => Special::Root,
        wire::SpecialPath::Minimal => Special::Minimal,
        wire::SpecialPath::ProjectRoots { subpath } => Special::ProjectRoots {
            below: subpath.clone().unwrap_or_default(),
        },
        wire::SpecialPath::Tmpdir => Special::Tmpdir,
        wire::SpecialPath::SlashTmp => Special::SlashTmp,
        wire::SpecialPath::Unknown { path, .. } => Special::Unknown(path.clone()),
    }
}

/// What is told of the sandbox of this host.
pub(crate) fn sandbox_support(
    level: Level,
    found: Result<Means, Unenforceable>,
) -> wire::SandboxSupport {
    let reason = found.err().map(|reason| reason.to_string());
    wire::SandboxSupport {
        kind: match reason {
            None => wire::SandboxType::LinuxSeccomp,
            Some(_) => wire::SandboxType::None,
        },
        level: match level {
            Level::Namespaces => wire::SandboxLevel::Namespaces,
            Level::Landlock => wire::SandboxLevel::Landlock,
        },
        reason,
    }
}
