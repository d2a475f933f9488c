//! Builds the plan.

mod link_check;
mod own_paths;

pub use own_paths::OwnPath;

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    FileSystemView, GrantedRoots, LinkCreator, PlanError,
    binding::{BoundEntry, BoundPolicy, IfMissing, bind},
    resolve::{End, Resolved, resolve},
    scan::Scan,
    table::Table,
    unreachable::{UnreachableEntry, from_pattern},
};
use crate::{
    Access, GrantRecordError, Link, Origin, PathState, Plan, Rule, Warning,
    plan::is_kernel_path,
    policy::{FileSystem, Policy, Restricted},
};

/// Names below every writable root that are read-only unless an entry grants them: programs outside of
/// the sandbox trust their contents.
pub const PROTECTED: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// The properties of the child that matter for its plan.
#[derive(Clone, Copy, Debug)]
pub struct ProcessDirectories<'a> {
    /// The working directory of the process. Absolute.
    pub cwd: &'a Path,
    /// The `$TMPDIR` of the process, if it has one.
    pub tmpdir: Option<&'a Path>,
}

/// The properties of the server that matter for every plan.
#[derive(Clone, Copy)]
pub struct ServerPaths<'a> {
    /// Reads the record of directories that earlier plans made writable. Called after links were followed,
    /// so that the record of a process that planted one is seen.
    pub granted: &'a dyn Fn() -> Result<Arc<GrantedRoots>, GrantRecordError>,
    /// Paths of Outpost itself.
    pub own: &'a [OwnPath],
}

/// The limits of a plan. The default is used in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// The number of entries, counted for each workspace root.
    pub entries: usize,
    /// The length of a pattern in bytes.
    pub pattern_bytes: usize,
    /// The number of files visited for patterns.
    pub visited: usize,
    /// The number of rules.
    pub rules: usize,
    /// The length in bytes of a directory's path that is scanned for patterns. With a name of 255 bytes
    /// and bubblewrap's prefix it stays below the kernel's `PATH_MAX`.
    pub path_bytes: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            entries: 4096,
            pattern_bytes: 1024,
            visited: 200_000,
            rules: 2000,
            path_bytes: 3776,
        }
    }
}

/// Binds a policy to the paths of a file system.
pub fn plan(
    policy: &Policy,
    context: &ProcessDirectories<'_>,
    server: &ServerPaths<'_>,
    view: &dyn FileSystemView,
    limits: &PlanLimits,
) -> Result<Plan, PlanError> {
    let cwd = resolve(view, context.cwd)?;
    let mut planner = Planner {
        view,
        table: Table::default(),
        masks: Vec::new(),
        closed: Vec::new(),
        absent_grants: Vec::new(),
        links: cwd.links,
        checked_links: Vec::new(),
        named: BTreeSet::new(),
        warnings: Vec::new(),
    };
    match &policy.file_system {
        FileSystem::Unrestricted => {
            let (root, presence) = (PathBuf::from("/"), PathState::Directory);
            let all = Rule::new(root, Access::Write, presence, Origin::Entry);
            planner.table.add(all);
            planner.add_own_paths(server.own)?;
        }
        FileSystem::Restricted(files) => {
            let bound = bind(policy, files, context, limits)?;
            planner.restrict(files, bound, server, limits)?;
        }
    }
    planner.check_links(server)?;
    planner.add_closed()?;
    planner.add_masks();
    planner.check_absent_grants()?;
    planner.table = std::mem::take(&mut planner.table).without_redundant_denials();
    planner.table.pin();
    if planner.table.rules.len() > limits.rules {
        let limit = limits.rules;
        return Err(PlanError::ManyRules { limit });
    }
    Ok(Plan {
        links: planner.missing_links(),
        rules: identified(planner.table.rules.into_values().collect(), view)?,
        network: policy.network,
        listen: Vec::new(),
        cwd: cwd.path,
        warnings: planner.warnings,
    })
}

/// The state of a plan that is being made.
struct Planner<'a> {
    view: &'a dyn FileSystemView,
    table: Table,
    /// Rules for paths that must stay absent.
    masks: Vec<Rule>,
    /// Entries behind closed directories.
    closed: Vec<UnreachableEntry>,
    /// Writable paths that don't exist.
    absent_grants: Vec<(PathBuf, IfMissing)>,
    /// Links on the way to granted paths and the working directory.
    links: Vec<Link>,
    /// Links on the way to an entry's path, each with that path.
    checked_links: Vec<(PathBuf, PathBuf)>,
    /// Paths with entries other than those for temporary directories.
    named: BTreeSet<PathBuf>,
    warnings: Vec<Warning>,
}

impl Planner<'_> {
    fn restrict(
        &mut self,
        files: &Restricted,
        bound: BoundPolicy,
        server: &ServerPaths<'_>,
        limits: &PlanLimits,
    ) -> Result<(), PlanError> {
        let is_narrowed = !bound.patterns.is_empty()
            || bound.paths.iter().any(|path| path.access != Access::Write);
        self.warnings.extend(bound.warnings);
        for path in bound.paths {
            self.add_entry(path)?;
        }
        let root = self.table.rules.get(Path::new("/"));
        let is_everything_writable =
            root.is_some_and(|rule| rule.access == Access::Write) && !is_narrowed;
        if !is_everything_writable {
            self.protect()?;
        }
        self.add_own_paths(server.own)?;
        let max_depth = files.glob_scan_max_depth;
        let max_depth = max_depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX));
        let mut scan = Scan::new(self.view, max_depth, limits);
        for pattern in &bound.patterns {
            let found = scan.matches(pattern, |path, matched| self.is_hidden(path, matched))?;
            for path in found {
                let Resolved { path, end, .. } = resolve(self.view, &path)?;
                if let End::OutOfReach { closed } = &end {
                    self.closed.push(from_pattern(closed));
                }
                if end.presence() == PathState::Absent {
                    continue;
                }
                self.table
                    .add(Rule::new(path, Access::Deny, end.presence(), Origin::Glob));
                // A generous limit, because redundant denials are removed later.
                if self.table.rules.len() > limits.rules * 8 {
                    let limit = limits.rules;
                    return Err(PlanError::ManyRules { limit });
                }
            }
        }
        let closed = scan.closed.iter().map(|path| from_pattern(path));
        self.closed.extend(closed);
        for path in scan.too_long {
            if self.table.grants_below(&path) {
                return Err(PlanError::LongPath(path));
            }
            self.warnings.push(Warning::LongPath(path.clone()));
            let presence = PathState::Directory;
            self.table
                .add(Rule::new(path, Access::Deny, presence, Origin::Glob));
        }
        self.checked_links.extend(scan.links);
        Ok(())
    }

    /// Adds the rule of one entry for one path.
    fn add_entry(&mut self, entry: BoundEntry) -> Result<(), PlanError> {
        let BoundEntry {
            path: named,
            access,
            origin,
            if_missing,
        } = entry;
        let Resolved { path, end, links } = resolve(self.view, &named)?;
        if origin != Origin::Minimal {
            let checked = links.iter().map(|link| (link.path.clone(), named.clone()));
            self.checked_links.extend(checked);
        }
        if access != Access::Deny {
            self.links.extend(links);
        }
        if if_missing != IfMissing::Warn {
            self.named.insert(path.clone());
        }
        match end {
            End::Directory | End::File => {
                self.table
                    .add(Rule::new(path, access, end.presence(), origin));
            }
            // A host need not have all of the minimal paths.
            _ if origin == Origin::Minimal && access != Access::Deny => {}
            End::OutOfReach { closed } => {
                if access == Access::Write {
                    self.absent_grants.push((path.clone(), if_missing));
                }
                self.closed.push(UnreachableEntry {
                    directory: closed,
                    path,
                    access,
                    origin,
                });
            }
            _ if access == Access::Write => self.absent_grants.push((path, if_missing)),
            End::MissingFrom(first) => {
                let mask = Rule::new(first, access, PathState::Absent, origin);
                self.masks.push(mask);
            }
            End::BlockedBy(kept) => {
                let mask = Rule::new(kept.clone(), Access::Read, PathState::File, origin);
                self.masks.push(mask);
                let denied = access == Access::Deny;
                self.warnings.push(Warning::Blocked { path, kept, denied });
            }
        }
        Ok(())
    }

    /// Makes the protected names below each writable root read-only.
    fn protect(&mut self) -> Result<(), PlanError> {
        let roots: Vec<PathBuf> = self
            .table
            .iter()
            .filter(|rule| rule.access == Access::Write && rule.presence == PathState::Directory)
            .map(|rule| rule.path.clone())
            .collect();
        for (root, name) in roots
            .iter()
            .flat_map(|root| PROTECTED.map(|name| (root, name)))
        {
            let path = root.join(name);
            let granted = self.absent_grants.iter().any(|(grant, _)| *grant == path);
            if granted || self.table.rules.contains_key(&path) {
                continue;
            }
            let Resolved { end, links, .. } = resolve(self.view, &path)?;
            if let Some(link) = links.into_iter().next() {
                let link = link.path;
                // With an error, any user of the host could block all starts.
                if !self.named.contains(root) {
                    self.warnings.push(Warning::TemporaryLink(link));
                    continue;
                }
                return Err(PlanError::LinkInWritable { link, path });
            }
            match end {
                End::Directory | End::File => {
                    let presence = end.presence();
                    let protected = Rule::new(path, Access::Read, presence, Origin::Protected);
                    self.table.add(protected);
                }
                _ => {
                    let mask = Rule::new(path, Access::Read, PathState::Absent, Origin::Protected);
                    self.masks.push(mask);
                }
            }
        }
        Ok(())
    }

    /// Returns whether matches in a directory would need no rule.
    fn is_hidden(&self, path: &Path, matched: bool) -> bool {
        let covering = self.table.covering(path);
        let is_unseen = covering.is_none_or(|rule| rule.access == Access::Deny);
        (matched || is_unseen) && !self.table.has_below(path)
    }

    /// Adds rules for entries behind closed directories.
    fn add_closed(&mut self) -> Result<(), PlanError> {
        for closed in std::mem::take(&mut self.closed) {
            let (rule, warning) = closed.to_rule(&self.table, self.view)?;
            self.warnings.extend(warning);
            if let Some(rule) = rule {
                self.table.add(rule);
            }
        }
        Ok(())
    }

    /// Reports writable paths that don't exist, unless they can be created. A rule for the path itself is a
    /// denial, which has precedence.
    fn check_absent_grants(&mut self) -> Result<(), PlanError> {
        for (path, if_missing) in std::mem::take(&mut self.absent_grants) {
            if self.table.is_writable(&path) || self.table.rules.contains_key(&path) {
                continue;
            }
            match if_missing {
                IfMissing::Error => return Err(PlanError::NothingToWrite(path)),
                IfMissing::Warn => self.warnings.push(Warning::NothingToWrite(path)),
                IfMissing::Ignore => {}
            }
        }
        Ok(())
    }

    /// Adds masks for absent paths that could be created.
    fn add_masks(&mut self) {
        let mut masks = std::mem::take(&mut self.masks);
        masks.retain(|mask| {
            let above = self.table.above(&mask.path);
            let creatable = above.is_some_and(|above| above.access == Access::Write);
            creatable && !is_kernel_path(&mask.path) && !self.table.rules.contains_key(&mask.path)
        });
        // Of two masks for the same path, the stricter one stays.
        for mask in masks {
            self.table.add(mask);
        }
    }

    /// Returns the links to create inside, without duplicates.
    fn missing_links(&self) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        for link in &self.links {
            let covered = self.table.covering(&link.path).is_some();
            if !covered && !links.contains(link) {
                links.push(link.clone());
            }
        }
        links
    }
}

/// Adds identities to the rules. Their paths are canonical, so a symbolic link found now was just created
/// and is an error. A readable path that was removed counts as absent; most often it was another process's
/// placeholder.
fn identified(mut rules: Vec<Rule>, view: &dyn FileSystemView) -> Result<Vec<Rule>, PlanError> {
    for rule in &mut rules {
        if rule.presence == PathState::Absent {
            continue;
        }
        match view.identify(&rule.path) {
            Ok(found) => rule.identity = found,
            Err(error) if error.kind() == ErrorKind::NotFound && rule.access == Access::Read => {
                rule.presence = PathState::Absent;
            }
            Err(error) => {
                let path = rule.path.clone();
                return Err(PlanError::Inspect { path, error });
            }
        }
    }
    Ok(rules)
}
