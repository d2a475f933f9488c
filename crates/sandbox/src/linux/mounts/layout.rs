//! Derives the mounts of a sandbox and their order from a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::host_view::{HostView, KernelMount, KernelMountKind};
use crate::plan::is_kernel_path;
use crate::{Access, Identity, Link, Origin, PathState, Plan, Rule};

/// The mounts of a sandbox and their preconditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::linux) struct Layout {
    pub(in crate::linux) mounts: Mounts,
    /// Paths that don't exist and must not be created. Each needs a placeholder to mount over.
    pub(in crate::linux) absent: Vec<PathBuf>,
}

/// The mounts inside a sandbox, besides its own `/dev` and `/proc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct Mounts {
    /// Sorted by path, so that a mount comes after those above it. Without `/`, the root is an empty
    /// directory.
    pub(in crate::linux) mounts: Vec<PlannedMount>,
    /// Symbolic links to create where the host's aren't visible.
    pub(in crate::linux) links: Vec<Link>,
}

/// A path and its mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) struct PlannedMount {
    #[serde(with = "crate::serde_as_bytes")]
    pub(in crate::linux) path: PathBuf,
    pub(in crate::linux) mount: Mount,
    /// The host's file that must be there, if it is known; for a mask, the file under it.
    pub(in crate::linux) identity: Option<Identity>,
}

/// The kind of a mount.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::linux) enum Mount {
    /// The host's files, writable.
    Writable,
    /// The host's files, read-only.
    Readable,
    /// A device of the host.
    Device,
    /// Hides a directory.
    HiddenDirectory,
    /// Hides a directory but can be traversed to grants below it.
    Traversable,
    /// Hides a file.
    HiddenFile,
    /// Shows an empty, read-only directory.
    Empty,
}

/// The directory of devices, which every sandbox has on its own.
const DEV: &str = "/dev";

/// The devices of the host that every sandbox gets.
pub(in crate::linux) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Files and directories of procfs and sysfs that show the host's kernel, its memory or its hardware
/// to root, which owns them, or to everybody. Container runtimes mask most of them too. Everything
/// else in procfs and sysfs is read-only, or needs a capability such as `/proc/kmsg`.
const KERNEL_SECRETS: [&str; 21] = [
    "/proc/acpi",
    "/proc/allocinfo",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/pagetypeinfo",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
];

impl Mount {
    /// Returns the mode of the mounted tmpfs; none if the mount isn't one.
    pub(in crate::linux) fn mode(self) -> Option<u32> {
        match self {
            Mount::HiddenDirectory => Some(0),
            Mount::Traversable => Some(0o111),
            Mount::Empty => Some(0o555),
            Mount::Writable | Mount::Readable | Mount::Device | Mount::HiddenFile => None,
        }
    }
}

/// Derives the mounts.
///
/// `placeholders` are the paths of other sandboxes' placeholders. They are masked too if this process
/// could write there: deleting a placeholder would remove the mount above it.
pub(in crate::linux) fn lay_out(
    plan: &Plan,
    host: &impl HostView,
    placeholders: &[PathBuf],
) -> Layout {
    let absent = absent(plan, host, placeholders);
    let mounts = mounts(plan, host, &absent).into_iter();
    let mounts = mounts.map(|(path, mount)| PlannedMount {
        // A placeholder may have been created anew since the plan was made.
        identity: identity(plan, &path).filter(|_| !absent.contains_key(&path)),
        path,
        mount,
    });
    Layout {
        mounts: Mounts {
            mounts: mounts.collect(),
            links: plan.links.clone(),
        },
        absent: absent.into_keys().collect(),
    }
}

/// Returns the identity of the host's file at a path. Kernel file systems have none: they can't be
/// replaced, and their inodes differ in each namespace.
fn identity(plan: &Plan, path: &Path) -> Option<Identity> {
    let mut rules = plan.rules.iter().rev();
    let rule = rules.find(|rule| rule.path == *path)?;
    rule.identity.filter(|_| !is_kernel_path(path))
}

fn mounts(
    plan: &Plan,
    host: &impl HostView,
    absent: &BTreeMap<PathBuf, Access>,
) -> BTreeMap<PathBuf, Mount> {
    let rules = plan.rules.iter().enumerate();
    let mounts = rules.filter_map(|(at, rule)| {
        let mount = mount(plan, at, rule, host)?;
        Some((rule.path.clone(), mount))
    });
    let mut mounts: BTreeMap<_, _> = mounts.collect();
    // A process of root can write kernel settings even without capabilities, and some of them allow an
    // escape.
    let sys = Path::new("/sys");
    if plan.access(sys) == Access::Write && host.exists(sys) {
        mounts.insert(sys.to_owned(), Mount::Readable);
    }
    // Kernel file systems may be mounted elsewhere too, for example in a tree for `chroot`.
    for KernelMount { path, kind } in host.kernel_mounts() {
        let is_elsewhere = !is_kernel_path(&path);
        let mount = match (kind, plan.access(&path)) {
            (KernelMountKind::Proc, Access::Read | Access::Write) => {
                if host.is_directory(&path) {
                    Mount::HiddenDirectory
                } else {
                    // A single file of procfs, bind-mounted.
                    Mount::HiddenFile
                }
            }
            (KernelMountKind::Settings, Access::Write) => Mount::Readable,
            _ => continue,
        };
        // A path that our user can't reach needs no mount.
        if is_elsewhere && !path.starts_with(DEV) && host.exists(&path) {
            mounts.insert(path, mount);
        }
    }
    // Each mount costs time, so paths that our user can't read are left alone. Inside, it is the same user
    // without capabilities.
    let secrets = KERNEL_SECRETS.map(Path::new).into_iter();
    let secrets =
        secrets.filter(|path| path.starts_with("/proc") || plan.access(path) != Access::Deny);
    for path in secrets.filter(|path| host.is_readable(path)) {
        let is_directory = host.is_directory(path);
        let mask = if is_directory {
            Mount::HiddenDirectory
        } else {
            Mount::HiddenFile
        };
        mounts.insert(path.to_owned(), mask);
    }
    // Last, so that an absent path is always masked, whatever other rules say.
    for (path, access) in absent {
        let mount = match access {
            Access::Deny => Mount::HiddenDirectory,
            _ => Mount::Empty,
        };
        mounts.insert(path.clone(), mount);
    }
    mounts
}

/// Returns the mount for one rule, if it needs one.
fn mount(plan: &Plan, at: usize, rule: &Rule, host: &impl HostView) -> Option<Mount> {
    if is_kernel_path(&rule.path) && rule.access != Access::Deny {
        // With a granted root, `/sys` is visible already.
        let needs_mount = rule.path.starts_with("/sys") && is_hidden(plan, at);
        return needs_mount.then_some(Mount::Readable);
    }
    if rule.presence == PathState::Absent {
        return None;
    }
    let is_below_dev = rule.path.starts_with(DEV);
    if is_below_dev && rule.access != Access::Deny && !grants_host_device(plan, at) {
        return None;
    }
    let above = above(plan, at).filter(|above| !is_below_dev || is_host_device(&above.path));
    match rule.access {
        Access::Write if is_below_dev && host.is_device(&rule.path) => Some(Mount::Device),
        // Needed even below another writable mount: a mount point can't be renamed.
        Access::Write => Some(Mount::Writable),
        Access::Read if above.is_some_and(|above| above.access == Access::Read) => None,
        Access::Read => Some(Mount::Readable),
        Access::Deny if is_hidden(plan, at) => None,
        Access::Deny if rule.presence == PathState::File => Some(Mount::HiddenFile),
        Access::Deny if grants_below(plan, at) => Some(Mount::Traversable),
        Access::Deny => Some(Mount::HiddenDirectory),
    }
}

/// Returns whether a rule grants a path of the host below `/dev`. Pinned directories don't count; they
/// depend on the rule above them.
fn grants_host_device(plan: &Plan, at: usize) -> bool {
    let rules = plan.rules[..=at].iter().rev();
    let mut named = rules
        .filter(|rule| rule.origin != Origin::Pinned)
        .filter(|rule| plan.rules[at].path.starts_with(&rule.path));
    named.next().is_some_and(|rule| is_host_device(&rule.path))
}

/// Returns whether a path is below `/dev` and isn't in every sandbox anyway.
fn is_host_device(path: &Path) -> bool {
    path.starts_with(DEV) && !is_standard_device(path)
}

/// Returns whether a rule grants a device read-only, which no mount can enforce.
pub(in crate::linux) fn is_read_only_device(rule: &Rule, host: &impl HostView) -> bool {
    rule.access == Access::Read && is_host_device(&rule.path) && host.is_device(&rule.path)
}

/// Returns paths that don't exist, could be created, and must not be, each with its access.
///
/// For a denied or read-only path that doesn't exist, this is its first missing component, if the
/// directory above is writable both by the plan and on the host. Placeholders count as missing.
fn absent(
    plan: &Plan,
    host: &impl HostView,
    placeholders: &[PathBuf],
) -> BTreeMap<PathBuf, Access> {
    let mut found: BTreeMap<PathBuf, Access> = BTreeMap::new();
    for (at, rule) in plan.rules.iter().enumerate() {
        if rule.access == Access::Write || !is_absent(rule, host) {
            continue;
        }
        let missing = first_missing(plan, &rule.path, host);
        let above = rule_above(plan, at, &missing);
        let creatable = missing
            .parent()
            .is_some_and(|parent| host.is_creatable_in(parent));
        if creatable && above.is_some_and(|above| above.access == Access::Write) {
            let access = found.entry(missing).or_insert(rule.access);
            *access = (*access).max(rule.access);
        }
    }
    for path in placeholders {
        let has_rule = plan.rules.iter().any(|rule| rule.path.starts_with(path));
        let writable = plan.access(path) == Access::Write && host.is_placeholder(path);
        if writable && !has_rule {
            found.entry(path.clone()).or_insert(Access::Read);
        }
    }
    found
}

fn is_absent(rule: &Rule, host: &impl HostView) -> bool {
    match rule.presence {
        PathState::Absent => true,
        // A placeholder of another sandbox, also if it was removed after planning.
        PathState::Directory => host.is_placeholder(&rule.path) || !host.exists(&rule.path),
        PathState::File => false,
    }
}

fn first_missing(plan: &Plan, path: &Path, host: &impl HostView) -> PathBuf {
    let mut first = path;
    for parent in path.ancestors().skip(1) {
        // A granted directory is the user's, even if it looks like a placeholder.
        let is_granted = || {
            let mut writable = plan.rules.iter().filter(|rule| rule.path == *parent);
            writable.any(|rule| rule.access == Access::Write && rule.origin != Origin::Pinned)
        };
        if host.exists(parent) && (!host.is_placeholder(parent) || is_granted()) {
            break;
        }
        first = parent;
    }
    first.to_owned()
}

/// Returns the rule that would apply without this rule.
fn above(plan: &Plan, at: usize) -> Option<&Rule> {
    rule_above(plan, at, &plan.rules[at].path)
}

/// Returns the rule among the first `before` that would apply to a path without rules of its own.
fn rule_above<'a>(plan: &'a Plan, before: usize, path: &Path) -> Option<&'a Rule> {
    let rules = plan.rules[..before].iter().rev();
    rules
        .filter(|rule| rule.path != *path)
        .find(|rule| path.starts_with(&rule.path))
}

/// Returns whether the path would be hidden without this rule.
fn is_hidden(plan: &Plan, at: usize) -> bool {
    above(plan, at).is_none_or(|above| above.access == Access::Deny)
}

fn grants_below(plan: &Plan, at: usize) -> bool {
    let path = &plan.rules[at].path;
    plan.rules[at..]
        .iter()
        .any(|rule| rule.access != Access::Deny && rule.path.starts_with(path))
}

/// Returns whether a path below `/dev` exists in every sandbox.
fn is_standard_device(path: &Path) -> bool {
    let others = [
        "", "pts", "ptmx", "shm", "fd", "stdin", "stdout", "stderr", "console",
    ];
    let name = path.strip_prefix(DEV).unwrap_or(path);
    let is = |path: &str| name == Path::new(path);
    others.iter().any(|other| is(other)) || DEVICES.iter().any(|device| path == Path::new(device))
}

#[cfg(test)]
mod tests;
