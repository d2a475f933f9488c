//! Binds the entries of a policy to paths.

use std::path::{Component, Path, PathBuf};

use super::{PlanError, PlanLimits, ProcessDirectories, pattern::Pattern};
use crate::{
    Access, Network, Origin, Warning,
    policy::{Entry, EntryPath, MissingPathBehavior, Policy, Restricted, SpecialPath},
};

/// The prefix of patterns that apply to each project root.
pub(crate) const EACH_PROJECT_ROOT: &str = "codex-project-roots://";

/// The paths that a dynamic program needs to run: programs, libraries, files of the dynamic loader,
/// certificates and time zones of common distributions. A host need not have all of them. Devices are
/// not included: every sandbox has a `/dev` of its own.
const MINIMAL: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/run/current-system/sw",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
];

/// Configuration of name resolution, which a program needs with network access.
const MINIMAL_NETWORK: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// The entries of a policy, bound to paths.
#[derive(Debug, Default)]
pub(super) struct BoundPolicy {
    pub(super) paths: Vec<BoundEntry>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) warnings: Vec<Warning>,
}

/// The access at an absolute path, which may contain symbolic links.
#[derive(Debug)]
pub(super) struct BoundEntry {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) origin: Origin,
    pub(super) if_missing: IfMissing,
}

/// The reaction to a writable path that doesn't exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    /// An error.
    Error,
    /// A warning.
    Warn,
    /// Nothing.
    Ignore,
}

pub(super) fn bind(
    policy: &Policy,
    files: &Restricted,
    context: &ProcessDirectories<'_>,
    limits: &PlanLimits,
) -> Result<BoundPolicy, PlanError> {
    let count = files
        .entries
        .len()
        .saturating_mul(policy.workspace_roots.len().max(1));
    if count > limits.entries {
        let limit = limits.entries;
        return Err(PlanError::ManyEntries { count, limit });
    }
    let mut bound = BoundPolicy::default();
    for entry in &files.entries {
        match &entry.path {
            EntryPath::Path { path } => bound.path(path.clone(), entry),
            EntryPath::Special { value } => bound.special(value, entry, policy, context)?,
            EntryPath::GlobPattern { pattern } => bound.pattern(pattern, entry, policy, limits)?,
        }
    }
    Ok(bound)
}

impl BoundPolicy {
    fn path(&mut self, path: PathBuf, entry: &Entry) {
        let if_missing = match entry.missing_path_behavior {
            None => IfMissing::Error,
            Some(MissingPathBehavior::Skip) => IfMissing::Ignore,
        };
        self.push(path, entry, Origin::Entry, if_missing);
    }

    fn push(&mut self, path: PathBuf, entry: &Entry, origin: Origin, if_missing: IfMissing) {
        self.paths.push(BoundEntry {
            path,
            access: entry.access,
            origin,
            if_missing,
        });
    }

    fn special(
        &mut self,
        special: &SpecialPath,
        entry: &Entry,
        policy: &Policy,
        context: &ProcessDirectories<'_>,
    ) -> Result<(), PlanError> {
        match special {
            SpecialPath::Root => self.path("/".into(), entry),
            SpecialPath::Minimal => {
                let of_network = match policy.network {
                    Network::Restricted => &[][..],
                    Network::Enabled => MINIMAL_NETWORK,
                };
                for path in MINIMAL.iter().chain(of_network) {
                    self.push(path.into(), entry, Origin::Minimal, IfMissing::Ignore);
                }
            }
            SpecialPath::ProjectRoots { subpath } => {
                let below = subpath.as_deref().unwrap_or(Path::new(""));
                let mut components = below.components();
                if !components.all(|one| matches!(one, Component::Normal(_) | Component::CurDir)) {
                    return Err(PlanError::Subpath(below.to_owned()));
                }
                for root in &policy.workspace_roots {
                    let path: PathBuf = root.join(below).components().collect();
                    self.path(path, entry);
                }
            }
            SpecialPath::Tmpdir => match context.tmpdir {
                Some(path) if path.is_absolute() => {
                    self.push(path.to_owned(), entry, Origin::Entry, IfMissing::Warn);
                }
                Some(path) => self.warnings.push(Warning::Tmpdir(path.to_owned())),
                None => {}
            },
            SpecialPath::SlashTmp => {
                self.push("/tmp".into(), entry, Origin::Entry, IfMissing::Warn);
            }
            SpecialPath::Unknown { path, .. } => {
                let warning = Warning::UnknownSpecial(excerpt(path));
                self.warnings.push(warning);
            }
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        text: &str,
        entry: &Entry,
        policy: &Policy,
        limits: &PlanLimits,
    ) -> Result<(), PlanError> {
        if entry.access != Access::Deny {
            return Err(PlanError::GrantingPattern(excerpt(text)));
        }
        if text.is_empty() {
            return Err(PlanError::EmptyPattern);
        }
        let (text, bases) = match text.strip_prefix(EACH_PROJECT_ROOT) {
            Some(rest) => (
                rest.trim_start_matches('/'),
                policy.workspace_roots.as_slice(),
            ),
            None => (text, std::slice::from_ref(&policy.cwd)),
        };
        for base in bases {
            let patterns = Pattern::all(base, text, limits.pattern_bytes);
            self.patterns
                .extend(patterns.ok_or_else(|| PlanError::LongPattern {
                    start: excerpt(text),
                    limit: limits.pattern_bytes,
                })?);
            // Each alternative counts as an entry.
            let (count, limit) = (self.patterns.len(), limits.entries);
            if count > limit {
                return Err(PlanError::ManyEntries { count, limit });
            }
        }
        Ok(())
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(100).collect()
}
