//! Checks that a level can enforce a plan.

use std::path::{Path, PathBuf};

use super::mounts::{self, LocalHostPaths};
use crate::{Access, Origin, Plan, PrepareError, Rule, Warning};

/// Checks that namespaces can enforce a plan and that it shows what the helper needs.
pub(super) fn check_namespaces(plan: &Plan, libraries: &[PathBuf]) -> Result<(), PrepareError> {
    let proc = Path::new("/proc");
    let is_denied = |rule: &Rule| rule.path == proc && rule.access == Access::Deny;
    if plan.rules.iter().any(is_denied) {
        return Err(PrepareError::ProcDenied(proc.to_owned()));
    }
    let mut rules = plan.rules.iter();
    if let Some(rule) = rules.find(|rule| mounts::is_read_only_device(rule, &LocalHostPaths)) {
        return Err(PrepareError::ReadOnlyDevice(rule.path.clone()));
    }
    let mut libraries = libraries.iter();
    match libraries.find(|library| plan.access(library) == Access::Deny) {
        Some(library) => Err(PrepareError::HelperLibrary(library.clone())),
        None => Ok(()),
    }
}

/// Checks that Landlock alone can enforce a plan.
///
/// Landlock can't make exceptions below a grant. A read-only path below a writable one stays writable,
/// which is part of this level's weaker promise. A denied path below a grant is an error.
pub(super) fn check_landlock(plan: &Plan) -> Result<(), PrepareError> {
    for warning in &plan.warnings {
        // Enforced by a mount over the file in the path's place.
        if let Warning::Blocked {
            path, denied: true, ..
        } = warning
        {
            return Err(PrepareError::DeniedBelowGrant(path.clone()));
        }
    }
    for (at, rule) in plan.rules.iter().enumerate() {
        let above = plan.covering(at, &rule.path);
        match (above.map(|above| above.access), rule.access) {
            (Some(Access::Read | Access::Write), Access::Deny) if rule.origin != Origin::Own => {
                return Err(PrepareError::DeniedBelowGrant(rule.path.clone()));
            }
            (Some(Access::Write), Access::Read | Access::Deny) => {
                tracing::warn!(
                    path = ?rule.path,
                    "read-only path is writable: sandbox.level is landlock"
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the shared libraries of this program.
pub(super) fn libraries() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<_> = maps
        .lines()
        .filter_map(|line| line.split_once('/'))
        .map(|(_, path)| PathBuf::from(format!("/{path}")))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.contains(".so"))
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}
