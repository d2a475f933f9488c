//! Planning on imaginary file systems.

mod closed;
mod fake_file_system;
mod globs;
mod grants;
mod links;
mod own_paths;
mod properties;
mod protected;

use std::path::Path;
use std::sync::Arc;

use fake_file_system::FakeFileSystem;

use super::*;
use crate::{
    Access, Network, PathState, Plan,
    policy::{Entry, EntryPath, FileSystem, Policy, SpecialPath},
};

fn policy(entries: Vec<Entry>) -> Policy {
    Policy {
        file_system: FileSystem::restricted(entries),
        network: Network::Restricted,
        cwd: "/ws".into(),
        workspace_roots: vec!["/ws".into()],
    }
}

fn with_depth(mut policy: Policy, depth: u64) -> Policy {
    if let FileSystem::Restricted(files) = &mut policy.file_system {
        files.glob_scan_max_depth = Some(depth);
    }
    policy
}

fn context() -> ProcessDirectories<'static> {
    ProcessDirectories {
        cwd: Path::new("/ws"),
        tmpdir: None,
    }
}

/// Plans on a server that has granted nothing before and has no paths of its own.
fn plan(
    policy: &Policy,
    context: &ProcessDirectories<'_>,
    view: &dyn FileSystemView,
    limits: &PlanLimits,
) -> Result<Plan, PlanError> {
    let server = ServerPaths {
        granted: &|| Ok(Arc::default()),
        own: &[],
    };
    super::plan(policy, context, &server, view, limits)
}

fn planned(tree: &FakeFileSystem, policy: &Policy) -> Plan {
    plan(policy, &context(), tree, &PlanLimits::default()).unwrap()
}

fn rejected(tree: &FakeFileSystem, policy: &Policy) -> (FailureKind, String) {
    let error = plan(policy, &context(), tree, &PlanLimits::default()).unwrap_err();
    (error.failure_kind(), error.to_string())
}

fn at(path: &str, access: Access) -> Entry {
    Entry::path(path, access)
}

fn read(path: &str) -> Entry {
    at(path, Access::Read)
}

fn write(path: &str) -> Entry {
    at(path, Access::Write)
}

fn deny(path: &str) -> Entry {
    at(path, Access::Deny)
}

fn pattern(text: &str) -> Entry {
    Entry::pattern(text, Access::Deny)
}

fn special(special: SpecialPath, access: Access) -> Entry {
    Entry::special(special, access)
}

fn project_roots(below: &str) -> SpecialPath {
    SpecialPath::below_project_roots(below)
}

/// Returns a readable form of a plan, one rule per line.
fn summary(plan: &Plan) -> String {
    let mut text = String::new();
    for rule in &plan.rules {
        let presence = match rule.presence {
            PathState::Directory => "dir",
            PathState::File => "file",
            PathState::Absent => "absent",
        };
        let (access, path, origin) = (rule.access, rule.path.display(), rule.origin);
        text += &format!("{access:?} {path} {presence} {origin:?}\n");
    }
    for link in &plan.links {
        text += &format!(
            "link {} -> {}\n",
            link.path.display(),
            link.target.display()
        );
    }
    for warning in &plan.warnings {
        text += &format!("! {warning}\n");
    }
    text
}
