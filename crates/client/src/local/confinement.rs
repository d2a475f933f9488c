//! What a process is to be confined to, for the engine: as a server would understand it.

use std::path::Path;

use outpost_engine::sandbox::{
    Access, Level, Means, Network, Unenforceable,
    policy::{Entry, FileSystem, Missing, Place, Policy, Restricted, Special},
};
use outpost_protocol as wire;

/// The policy that a sandbox asks us to enforce, for a process that starts in `cwd`. None if it asks
/// for nothing, or somebody else for it.
pub(super) fn policy(sandbox: &wire::SandboxParams, cwd: &Path) -> Option<Policy> {
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

fn network(access: wire::NetworkAccess) -> Network {
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
pub(super) fn support(level: Level, found: Result<Means, Unenforceable>) -> wire::SandboxSupport {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sandbox;

    #[test]
    fn what_a_sandbox_says_is_what_is_understood() {
        let mut said = Sandbox::workspace("/srv/project")
            .read("/opt")
            .write("/srv/cache")
            .deny("/srv/project/secrets")
            .deny_matching("**/*.pem")
            .network()
            .policy()
            .clone();
        if let FileSystem::Restricted(files) = &mut said.file_system {
            files.glob_scan_max_depth = Some(7);
            let places = [
                Special::Minimal,
                Special::Unknown(":x".to_owned()),
                Special::ProjectRoots {
                    below: "docs".into(),
                },
            ];
            let more = places.map(|place| Entry::new(Place::Special(place), Access::Deny));
            files.entries.extend(more.map(Entry::skipping_missing));
        }
        let everything = Policy {
            file_system: FileSystem::Unrestricted,
            ..said.clone()
        };
        for said in [said, everything] {
            let params = Sandbox::from(said.clone()).into();
            assert_eq!(policy(&params, Path::new("/elsewhere")), Some(said));
        }
    }

    #[test]
    fn patterns_start_where_the_process_does_unless_it_is_said() {
        let mut params: wire::SandboxParams = Sandbox::read_only("/srv").into();
        params.cwd = None;
        let understood = policy(&params, Path::new("/elsewhere"));
        assert_eq!(
            understood.map(|policy| policy.cwd),
            Some("/elsewhere".into())
        );
    }

    #[test]
    fn who_wants_nothing_of_us_gets_nothing() {
        for permissions in [wire::Permissions::Disabled, wire::Permissions::External] {
            let params = wire::SandboxParams {
                permissions,
                ..Sandbox::read_only("/").into()
            };
            assert_eq!(policy(&params, Path::new("/")), None);
        }
    }
}
