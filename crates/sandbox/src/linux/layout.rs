//! A plan as mounts: which of them, in which order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::host::{Host, KernelMount, Shows};
use super::place::{Place, Stands};
use crate::{Access, Link, Plan, Presence, Rule, Why};

/// What is mounted, and what must be there before it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) mounts: Mounts,
    /// Where nothing may be created and nothing is: there must be a directory to mount over.
    pub(super) absent: Vec<PathBuf>,
    /// What has to stand inside, once all is mounted.
    pub(super) places: Vec<Place>,
}

/// What a process finds inside, besides `/dev` and `/proc`, which are its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Paths in order, so that what is mounted over something comes after it. Where the root isn't
    /// among them it is an empty directory.
    pub(super) over: Vec<(PathBuf, Mount)>,
    /// What leads to them, where nothing of the host's is around.
    pub(super) links: Vec<Link>,
}

/// What stands at a path inside.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    /// The host's, as it is.
    Writable,
    /// The host's, to look at.
    Readable,
    /// A device of the host's.
    Device,
    /// Nothing that could be opened, over a directory.
    HiddenDirectory,
    /// The same, and there are grants below, which one must be able to reach.
    Passage,
    /// The same over anything else.
    HiddenFile,
    /// An empty directory that stays empty.
    Empty,
}

/// Where the kernel's own things are: always fresh, and never anybody's to grant.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Where devices are. What is there inside is the process's own, whatever is around it.
const DEV: &str = "/dev";

/// The devices of the host that everybody gets.
pub(super) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

impl Mount {
    /// The mode of what is mounted, where it isn't the host's.
    pub(super) fn mode(self) -> Option<u32> {
        match self {
            Mount::HiddenDirectory => Some(0),
            Mount::Passage => Some(0o111),
            Mount::Empty => Some(0o555),
            Mount::Writable | Mount::Readable | Mount::Device | Mount::HiddenFile => None,
        }
    }
}

/// Where others are held absent meanwhile is kept so here as well, if it could be changed: whoever
/// removed their place would take what is mounted over it away from them.
pub(super) fn lay_out(plan: &Plan, host: &impl Host, held: &[PathBuf]) -> Layout {
    let absent = absent(plan, host, held);
    let mounts = mounts(plan, host, &absent);
    Layout {
        places: mounts
            .iter()
            .map(|(path, mount)| place(plan, path, *mount))
            .collect(),
        mounts: Mounts {
            over: mounts.into_iter().collect(),
            links: plan.links.clone(),
        },
        absent: absent.into_keys().collect(),
    }
}

/// What has to be found at a mount.
fn place(plan: &Plan, path: &Path, mount: Mount) -> Place {
    let rule = plan.rules.iter().rev().find(|rule| rule.path == *path);
    // Of the kernel's own things nobody puts another in its place, and each namespace has others.
    let known = !KERNEL.iter().any(|kernel| path.starts_with(kernel));
    let identity = rule.and_then(|rule| rule.identity).filter(|_| known);
    let stands = match (mount, mount.mode()) {
        (_, Some(mode)) => Stands::Nothing { mode },
        (Mount::HiddenFile, _) => Stands::Null,
        (mount, _) => Stands::Host {
            identity,
            read_only: mount == Mount::Readable,
        },
    };
    let path = path.to_owned();
    Place { path, stands }
}

fn mounts(
    plan: &Plan,
    host: &impl Host,
    absent: &BTreeMap<PathBuf, Access>,
) -> BTreeMap<PathBuf, Mount> {
    let mut mounts = BTreeMap::new();
    for (at, rule) in plan.rules.iter().enumerate() {
        let Some(mount) = mount(plan, at, rule, host) else {
            continue;
        };
        mounts.insert(rule.path.clone(), mount);
    }
    // What is root's is root's inside as well, capabilities or not: a setting of the kernel would do
    // for a way out.
    let settings = Path::new("/sys");
    if plan.access(settings) == Access::Write && host.exists(settings) {
        mounts.insert(settings.to_owned(), Mount::Readable);
    }
    // What the kernel tells of itself may be mounted anywhere, in a tree for `chroot` perhaps.
    for KernelMount { path, shows } in host.kernel_mounts() {
        let elsewhere = !KERNEL.iter().any(|usual| path.starts_with(usual));
        let mount = match (shows, plan.access(&path)) {
            (Shows::Processes, Access::Read | Access::Write) => match host.is_directory(&path) {
                true => Mount::HiddenDirectory,
                // A single one may be mounted by itself.
                false => Mount::HiddenFile,
            },
            (Shows::Settings, Access::Write) => Mount::Readable,
            _ => continue,
        };
        // Who can't get there needn't be kept from it.
        if elsewhere && !path.starts_with(DEV) && host.exists(&path) {
            mounts.insert(path, mount);
        }
    }
    // These last: what is taken for absent is covered and never merely left out.
    for (path, access) in absent {
        let mount = match access {
            Access::Deny => Mount::HiddenDirectory,
            _ => Mount::Empty,
        };
        mounts.insert(path.clone(), mount);
    }
    mounts
}

/// What one rule takes, if it takes anything.
fn mount(plan: &Plan, at: usize, rule: &Rule, host: &impl Host) -> Option<Mount> {
    if KERNEL.iter().any(|path| rule.path.starts_with(path)) && rule.access != Access::Deny {
        // The ones of this host are there already, as far as there is a root to see them in.
        let visible = rule.path.starts_with("/sys") && is_hidden(plan, at);
        return visible.then_some(Mount::Readable);
    }
    if rule.presence == Presence::Absent {
        return None;
    }
    let is_below_dev = rule.path.starts_with(DEV);
    if is_below_dev && rule.access != Access::Deny && !is_brought(plan, at) {
        return None;
    }
    let above = above(plan, at).filter(|above| !is_below_dev || is_the_hosts(&above.path));
    match rule.access {
        Access::Write if is_below_dev && host.is_device(&rule.path) => Some(Mount::Device),
        // Also below another one that can be written: what is mounted can't be moved away.
        Access::Write => Some(Mount::Writable),
        Access::Read if above.is_some_and(|above| above.access == Access::Read) => None,
        Access::Read => Some(Mount::Readable),
        Access::Deny if is_hidden(plan, at) => None,
        Access::Deny if rule.presence == Presence::File => Some(Mount::HiddenFile),
        Access::Deny => Some(match grants_below(plan, at) {
            true => Mount::Passage,
            false => Mount::HiddenDirectory,
        }),
    }
}

/// Whether a rule brings something of the host's below `/dev`. What is only pinned there is so for
/// the sake of what somebody named above it.
fn is_brought(plan: &Plan, at: usize) -> bool {
    let rules = plan.rules[..=at].iter().rev();
    let mut named = rules
        .filter(|rule| rule.why != Why::Pinned)
        .filter(|rule| plan.rules[at].path.starts_with(&rule.path));
    named.next().is_some_and(|rule| is_the_hosts(&rule.path))
}

/// Whether a path below `/dev` is none of those that are there inside anyway.
fn is_the_hosts(path: &Path) -> bool {
    path.starts_with(DEV) && !is_usual_device(path)
}

/// Whether a rule asks to read a device and not to write it, which no mount can tell apart.
pub(super) fn is_half_a_device(rule: &Rule, host: &impl Host) -> bool {
    rule.access == Access::Read && is_the_hosts(&rule.path) && host.is_device(&rule.path)
}

/// Where something could be created that must not be, and what may be done there: the first part of
/// a path that isn't there, in a directory that can be written. Where the host itself lets nobody
/// like us create it, nothing has to be done. What another confined process has put there counts as
/// nothing.
fn absent(plan: &Plan, host: &impl Host, held: &[PathBuf]) -> BTreeMap<PathBuf, Access> {
    let mut found: BTreeMap<PathBuf, Access> = BTreeMap::new();
    for (at, rule) in plan.rules.iter().enumerate() {
        if rule.access == Access::Write || !is_absent(rule, host) {
            continue;
        }
        let first = first_missing(plan, &rule.path, host);
        let above = covering(plan, at, &first);
        let open = first.parent().is_some_and(|parent| host.is_open(parent));
        if open && above.is_some_and(|above| above.access == Access::Write) {
            let access = found.entry(first).or_insert(rule.access);
            *access = (*access).max(rule.access);
        }
    }
    for path in held {
        let granted = plan.rules.iter().any(|rule| rule.path.starts_with(path));
        let open = plan.access(path) == Access::Write && host.is_placeholder(path);
        if open && !granted {
            found.entry(path.clone()).or_insert(Access::Read);
        }
    }
    found
}

fn is_absent(rule: &Rule, host: &impl Host) -> bool {
    match rule.presence {
        Presence::Absent => true,
        // Another's placeholder, also if it has been taken away since the plan was made.
        Presence::Directory => host.is_placeholder(&rule.path) || !host.exists(&rule.path),
        Presence::File => false,
    }
}

fn first_missing(plan: &Plan, path: &Path, host: &impl Host) -> PathBuf {
    let mut first = path;
    for parent in path.ancestors().skip(1) {
        // What somebody is granted is there, whatever it looks like.
        let granted = || {
            let mut writable = plan.rules.iter().filter(|rule| rule.path == *parent);
            writable.any(|rule| rule.access == Access::Write && rule.why != Why::Pinned)
        };
        if host.exists(parent) && (!host.is_placeholder(parent) || granted()) {
            break;
        }
        first = parent;
    }
    first.to_owned()
}

/// The rule that would decide without this one.
fn above(plan: &Plan, at: usize) -> Option<&Rule> {
    covering(plan, at, &plan.rules[at].path)
}

fn covering<'a>(plan: &'a Plan, before: usize, path: &Path) -> Option<&'a Rule> {
    let rules = plan.rules[..before].iter().rev();
    rules
        .filter(|rule| rule.path != *path)
        .find(|rule| path.starts_with(&rule.path))
}

/// Whether nothing would be seen there without this rule.
fn is_hidden(plan: &Plan, at: usize) -> bool {
    above(plan, at).is_none_or(|above| above.access == Access::Deny)
}

fn grants_below(plan: &Plan, at: usize) -> bool {
    let path = &plan.rules[at].path;
    plan.rules[at..]
        .iter()
        .any(|rule| rule.access != Access::Deny && rule.path.starts_with(path))
}

/// These are there inside.
fn is_usual_device(path: &Path) -> bool {
    let others = [
        "", "pts", "ptmx", "shm", "fd", "stdin", "stdout", "stderr", "console",
    ];
    let name = path.strip_prefix(DEV).unwrap_or(path);
    let is = |path: &str| name == Path::new(path);
    others.iter().any(|other| is(other)) || DEVICES.iter().any(|usual| path == Path::new(usual))
}

#[cfg(test)]
#[path = "layout/tests.rs"]
mod tests;
