//! Checks that a level can enforce a plan.

use std::path::Path;

use super::mounts::{self, LocalHostPaths};
use crate::error::MAX_LISTENERS;
use crate::{Access, Origin, Plan, PrepareError, Rule, Warning};

/// Checks that namespaces can enforce a plan.
pub(super) fn check_namespaces(plan: &Plan) -> Result<(), PrepareError> {
    let proc = Path::new("/proc");
    let is_denied = |rule: &Rule| rule.path == proc && rule.access == Access::Deny;
    if plan.rules.iter().any(is_denied) {
        return Err(PrepareError::ProcDenied(proc.to_owned()));
    }
    if plan.listen.len() > MAX_LISTENERS {
        return Err(PrepareError::TooManyPorts(plan.listen.len()));
    }
    let mut rules = plan.rules.iter();
    match rules.find(|rule| mounts::is_read_only_device(rule, &LocalHostPaths)) {
        Some(rule) => Err(PrepareError::ReadOnlyDevice(rule.path.clone())),
        None => Ok(()),
    }
}

/// Checks that Landlock alone can enforce a plan.
///
/// Landlock can't make exceptions below a grant. A read-only path below a writable one stays writable,
/// which is part of this level's weaker promise. A denied path below a grant is an error.
pub(super) fn check_landlock(plan: &Plan) -> Result<(), PrepareError> {
    if !plan.listen.is_empty() {
        return Err(PrepareError::ManagedNetwork);
    }
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
        if let Some(exception) = unenforced(above.map(|above| above.access), rule)? {
            tracing::warn!(path = ?rule.path, "{exception}: sandbox.level is landlock");
        }
    }
    Ok(())
}

/// Describes what Landlock doesn't enforce for a rule below a path with the access `above`.
fn unenforced(above: Option<Access>, rule: &Rule) -> Result<Option<&'static str>, PrepareError> {
    Ok(match (above, rule.access) {
        (Some(Access::Read | Access::Write), Access::Deny) if rule.origin != Origin::Own => {
            return Err(PrepareError::DeniedBelowGrant(rule.path.clone()));
        }
        (Some(Access::Write), Access::Read) => Some("read-only path is writable"),
        (Some(Access::Write), Access::Deny) => Some("hidden path is writable"),
        (Some(Access::Read), Access::Deny) => Some("hidden path is readable"),
        (None | Some(Access::Deny), _) | (Some(_), Access::Write) | (_, Access::Read) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;

    #[test]
    fn every_exception_inside_a_grant_is_reported() {
        let rule = |access, origin| Rule::new("/x".into(), access, PathState::Directory, origin);
        let own = rule(Access::Deny, Origin::Own);
        let reported = |above, rule: &Rule| unenforced(above, rule).expect("allowed").is_some();
        assert!(reported(Some(Access::Read), &own));
        assert!(reported(Some(Access::Write), &own));
        assert!(reported(
            Some(Access::Write),
            &rule(Access::Read, Origin::Entry)
        ));
        assert!(!reported(None, &own));
        assert!(!reported(Some(Access::Deny), &own));
        assert!(!reported(
            Some(Access::Read),
            &rule(Access::Write, Origin::Entry)
        ));
        assert!(unenforced(Some(Access::Read), &rule(Access::Deny, Origin::Entry)).is_err());
    }
}
