//! Planning on trees that never existed.

mod agreement;
mod closed;
mod globs;
mod grants;
mod links;
mod made_up;
mod protected;

use std::path::{Path, PathBuf};

use made_up::MadeUp;

use super::*;
use crate::{
    Access, Network, Plan, Presence,
    policy::{Entry, FileSystem, Place, Policy, Restricted, Special},
};

fn policy(entries: Vec<Entry>) -> Policy {
    Policy {
        file_system: FileSystem::Restricted(Restricted {
            entries,
            glob_scan_max_depth: None,
        }),
        network: Network::Restricted,
        cwd: "/ws".into(),
        workspace_roots: vec!["/ws".into()],
    }
}

fn with_depth(mut policy: Policy, depth: usize) -> Policy {
    if let FileSystem::Restricted(files) = &mut policy.file_system {
        files.glob_scan_max_depth = Some(depth);
    }
    policy
}

fn child() -> Child<'static> {
    Child {
        cwd: Path::new("/ws"),
        tmpdir: None,
    }
}

fn planned(tree: &MadeUp, policy: &Policy) -> Plan {
    plan(policy, &child(), tree, &Bounds::default()).unwrap()
}

fn refused(tree: &MadeUp, policy: &Policy) -> (Failing, String) {
    let error = plan(policy, &child(), tree, &Bounds::default()).unwrap_err();
    (error.failing(), error.to_string())
}

fn at(path: &str, access: Access) -> Entry {
    Entry::new(Place::Path(path.into()), access)
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
    Entry::new(Place::Pattern(text.into()), Access::Deny)
}

fn special(special: Special, access: Access) -> Entry {
    Entry::new(Place::Special(special), access)
}

fn project_roots(below: &str) -> Special {
    let below = PathBuf::from(below);
    Special::ProjectRoots { below }
}

/// A plan in a form to read: a rule a line.
fn told(plan: &Plan) -> String {
    let mut told = String::new();
    for rule in &plan.rules {
        let presence = match rule.presence {
            Presence::Directory => "dir",
            Presence::File => "file",
            Presence::Absent => "absent",
        };
        let (access, path, why) = (rule.access, rule.path.display(), rule.why);
        told += &format!("{access:?} {path} {presence} {why:?}\n");
    }
    for link in &plan.links {
        told += &format!(
            "link {} -> {}\n",
            link.path.display(),
            link.target.display()
        );
    }
    for warning in &plan.warnings {
        told += &format!("! {warning}\n");
    }
    told
}
