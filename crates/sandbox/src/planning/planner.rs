//! The plan, put together.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    PlanError, View,
    binding::{Absence, Bound, BoundPath, bind},
    closed::{Closed, by_a_pattern},
    resolve::{End, Resolved, resolve},
    scan::Scan,
    table::Table,
};
use crate::{
    Access, Link, Plan, Presence, Rule, Warning, Why,
    policy::{FileSystem, Policy, Restricted},
};

/// Names under every writable root that are read-only unless an entry grants them: what runs there
/// later, outside, trusts what they say.
const PROTECTED: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// Where the kernel tells of itself. Nobody can make anything there, whatever is granted.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// What of the child matters for its plan.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// Where it starts. Absolute.
    pub cwd: &'a Path,
    /// Its `$TMPDIR`, if it has one.
    pub tmpdir: Option<&'a Path>,
}

/// How much a policy may ask for. The default is what ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries, counted for each workspace root.
    pub entries: usize,
    /// The length of a pattern.
    pub pattern_bytes: usize,
    /// Files that are looked at for patterns.
    pub visited: usize,
    /// Paths that are treated differently from what is around them.
    pub rules: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            entries: 4096,
            pattern_bytes: 1024,
            visited: 200_000,
            rules: 2000,
        }
    }
}

/// Binds a policy to the host that the view is of.
pub fn plan(
    policy: &Policy,
    child: &Child<'_>,
    view: &dyn View,
    bounds: &Bounds,
) -> Result<Plan, PlanError> {
    let cwd = resolve(view, child.cwd)?;
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
        FileSystem::Unrestricted => planner.table.add(rule(
            PathBuf::from("/"),
            Access::Write,
            Presence::Directory,
            Why::Entry,
        )),
        FileSystem::Restricted(files) => {
            let bound = bind(policy, files, child, bounds)?;
            planner.restrict(files, bound, bounds)?;
        }
    }
    if planner.table.len() > bounds.rules {
        let limit = bounds.rules;
        return Err(PlanError::ManyRules { limit });
    }
    Ok(Plan {
        links: planner.missing_links(),
        rules: identified(planner.table.into_rules(), view)?,
        network: policy.network,
        cwd: cwd.path,
        warnings: planner.warnings,
    })
}

struct Planner<'a> {
    view: &'a dyn View,
    table: Table,
    /// What may not appear.
    masks: Vec<Rule>,
    /// What was asked for where we can't look.
    closed: Vec<Closed>,
    /// What is granted and doesn't exist.
    absent_grants: Vec<(PathBuf, Absence)>,
    /// Links that were followed to what the child may see.
    links: Vec<Link>,
    /// Links that were followed to what an entry names, and the name.
    checked_links: Vec<(PathBuf, PathBuf)>,
    /// What there are entries about that don't just mean the temporary directory, whichever that is.
    named: BTreeSet<PathBuf>,
    warnings: Vec<Warning>,
}

impl Planner<'_> {
    fn restrict(
        &mut self,
        files: &Restricted,
        bound: Bound,
        bounds: &Bounds,
    ) -> Result<(), PlanError> {
        let narrowed = !bound.patterns.is_empty()
            || bound.paths.iter().any(|path| path.access != Access::Write);
        self.warnings.extend(bound.warnings);
        for path in bound.paths {
            self.enter(path)?;
        }
        let root = self.table.get(Path::new("/"));
        let everything = root.is_some_and(|rule| rule.access == Access::Write) && !narrowed;
        if !everything {
            self.protect()?;
        }
        let mut scan = Scan::new(self.view, files.glob_scan_max_depth, bounds);
        let mut by_name = Vec::new();
        for pattern in &bound.patterns {
            let found = scan.matches(pattern, |path, matched| self.is_hidden(path, matched))?;
            for path in found {
                let Resolved { path, end, .. } = resolve(self.view, &path)?;
                if let End::OutOfReach { closed } = &end {
                    self.closed.push(by_a_pattern(closed));
                }
                if end.presence() == Presence::Absent {
                    continue;
                }
                if pattern.by_name_alone {
                    by_name.push((path.clone(), pattern.base.clone()));
                }
                self.table
                    .add(rule(path, Access::Deny, end.presence(), Why::Glob));
                // Denials that others make needless are dropped later, so this is generous.
                if self.table.len() > bounds.rules * 8 {
                    let limit = bounds.rules;
                    return Err(PlanError::ManyRules { limit });
                }
            }
        }
        let closed = scan.into_closed();
        self.closed
            .extend(closed.iter().map(|path| by_a_pattern(path)));
        self.check_links()?;
        self.keep_closed()?;
        self.mask();
        self.settle_absent_grants()?;
        self.table = std::mem::take(&mut self.table).without_idle_denials();
        by_name.sort();
        // Wherever such a match is moved below the pattern's base, the next scan finds it again.
        self.table.pin(|rule, above| {
            let found = by_name.partition_point(|(path, _)| *path < rule.path);
            let found = by_name.get(found).filter(|(path, _)| *path == rule.path);
            rule.why == Why::Glob && found.is_some_and(|(_, base)| above.path.starts_with(base))
        });
        Ok(())
    }

    /// Takes in what one entry says about one path.
    fn enter(&mut self, entry: BoundPath) -> Result<(), PlanError> {
        let BoundPath {
            path: named,
            access,
            why,
            absence,
        } = entry;
        let Resolved { path, end, links } = resolve(self.view, &named)?;
        if why != Why::Minimal {
            let checked = links.iter().map(|link| (link.path.clone(), named.clone()));
            self.checked_links.extend(checked);
        }
        if access != Access::Deny {
            self.links.extend(links);
        }
        if absence != Absence::Warns {
            self.named.insert(path.clone());
        }
        match end {
            End::Directory | End::File => {
                self.table.add(rule(path, access, end.presence(), why));
            }
            // What a host lacks of the minimum, it doesn't get by being run on.
            _ if why == Why::Minimal && access != Access::Deny => {}
            End::OutOfReach { closed } => {
                if access == Access::Write {
                    self.absent_grants.push((path.clone(), absence));
                }
                self.closed.push(Closed {
                    directory: closed,
                    path,
                    access,
                    why,
                });
            }
            _ if access == Access::Write => self.absent_grants.push((path, absence)),
            End::MissingFrom(first) => {
                let mask = rule(first, access, Presence::Absent, why);
                self.masks.push(mask);
            }
            End::BlockedBy(kept) => {
                let mask = rule(kept.clone(), Access::Read, Presence::File, why);
                self.masks.push(mask);
                let denied = access == Access::Deny;
                self.warnings.push(Warning::Blocked { path, kept, denied });
            }
        }
        Ok(())
    }

    /// Makes the protected names under each writable root read-only.
    fn protect(&mut self) -> Result<(), PlanError> {
        let roots: Vec<PathBuf> = self
            .table
            .iter()
            .filter(|rule| rule.access == Access::Write && rule.presence == Presence::Directory)
            .map(|rule| rule.path.clone())
            .collect();
        for (root, name) in roots
            .iter()
            .flat_map(|root| PROTECTED.map(|name| (root, name)))
        {
            let path = root.join(name);
            let granted = self.absent_grants.iter().any(|(grant, _)| *grant == path);
            if granted || self.table.get(&path).is_some() {
                continue;
            }
            let Resolved { end, links, .. } = resolve(self.view, &path)?;
            if let Some(link) = links.into_iter().next() {
                let link = link.path;
                // Else any user of the host could keep all others from starting anything.
                if !self.named.contains(root) {
                    self.warnings.push(Warning::TemporaryLink(link));
                    continue;
                }
                return Err(PlanError::LinkInWritable { link, path });
            }
            match end {
                End::Directory | End::File => {
                    let presence = end.presence();
                    let protected = rule(path, Access::Read, presence, Why::Protected);
                    self.table.add(protected);
                }
                _ => {
                    let mask = rule(path, Access::Read, Presence::Absent, Why::Protected);
                    self.masks.push(mask);
                }
            }
        }
        Ok(())
    }

    /// Whether what is in a directory makes no difference to a pattern.
    fn is_hidden(&self, path: &Path, matched: bool) -> bool {
        let covering = self.table.covering(path);
        let unseen = covering.is_none_or(|rule| rule.access == Access::Deny);
        (matched || unseen) && !self.table.has_below(path)
    }

    /// A link that the confined process could replace would lead the next one somewhere else.
    fn check_links(&mut self) -> Result<(), PlanError> {
        for (link, path) in self.checked_links.drain(..) {
            if self.table.is_writable(&link) {
                return Err(PlanError::LinkInWritable { link, path });
            }
        }
        Ok(())
    }

    /// Keeps what was asked for behind closed directories.
    fn keep_closed(&mut self) -> Result<(), PlanError> {
        for closed in std::mem::take(&mut self.closed) {
            let (rule, warning) = closed.keep(&self.table, self.view)?;
            self.warnings.extend(warning);
            if let Some(rule) = rule {
                self.table.add(rule);
            }
        }
        Ok(())
    }

    /// What doesn't exist can be granted only where it may be created. A rule about the very path
    /// is somebody's denial, which goes first.
    fn settle_absent_grants(&mut self) -> Result<(), PlanError> {
        for (path, absence) in std::mem::take(&mut self.absent_grants) {
            if self.table.is_writable(&path) || self.table.get(&path).is_some() {
                continue;
            }
            match absence {
                Absence::Matters => return Err(PlanError::NothingToWrite(path)),
                Absence::Warns => self.warnings.push(Warning::NothingToWrite(path)),
                Absence::Fine => {}
            }
        }
        Ok(())
    }

    /// Keeps from appearing what could be created.
    fn mask(&mut self) {
        let mut masks = std::mem::take(&mut self.masks);
        masks.retain(|mask| {
            let above = self.table.above(&mask.path);
            let creatable = above.is_some_and(|above| above.access == Access::Write);
            let kernels = KERNEL.iter().any(|path| mask.path.starts_with(path));
            creatable && !kernels && self.table.get(&mask.path).is_none()
        });
        // Two of them may be about the same path, and the stricter one stays.
        for mask in masks {
            self.table.add(mask);
        }
    }

    /// The links that have to be made, each once.
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

/// With what is there. All of it is canonical, so a link that is found now has just been put there. What
/// may be read and isn't found any more is as absent as if it had never been: most often it was there to
/// keep another process from making it.
fn identified(mut rules: Vec<Rule>, view: &dyn View) -> Result<Vec<Rule>, PlanError> {
    for rule in &mut rules {
        if rule.presence == Presence::Absent {
            continue;
        }
        match view.identify(&rule.path) {
            Ok(found) => rule.identity = found,
            Err(why) if why.kind() == ErrorKind::NotFound && rule.access == Access::Read => {
                rule.presence = Presence::Absent;
            }
            Err(why) => {
                let path = rule.path.clone();
                return Err(PlanError::Look { path, why });
            }
        }
    }
    Ok(rules)
}

fn rule(path: PathBuf, access: Access, presence: Presence, why: Why) -> Rule {
    Rule {
        path,
        access,
        presence,
        identity: None,
        why,
    }
}
