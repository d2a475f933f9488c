//! The minimum sandbox of a principal: the most that its requests may access.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::policy::Policy;
use crate::{Access, Network, Plan, WithinRoots};

/// The minimum sandbox of a principal: the most that its processes and file operations may access. A
/// request whose policy grants more is refused.
#[derive(Clone, Debug)]
pub struct Floor {
    /// The policy that grants the most that a request may access.
    pub limit: Policy,
    /// The policy of a request without a policy.
    pub default: Policy,
    /// The `TMPDIR` in both policies. Not the `TMPDIR` of the process, which the client chooses.
    pub tmpdir: Option<OsString>,
    /// The directories that the request is restricted to besides. A policy that grants more is narrowed, not
    /// refused.
    pub within: Option<WithinRoots>,
}

/// A permission that a policy grants and the [`Floor`] does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The network.
    Network,
    /// Access to a path.
    Access {
        /// The path.
        path: PathBuf,
        /// The access that the policy grants.
        access: Access,
    },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Network => f.write_str("the network"),
            Excess::Access { path, access } => {
                write!(f, "{} access to {}", access.as_str(), path.display())
            }
        }
    }
}

impl Plan {
    /// Returns a permission that this plan grants and `limit` does not, if there is one.
    pub(crate) fn excess_over(&self, limit: &Plan) -> Option<Excess> {
        if self.network == Network::Enabled && limit.network != Network::Enabled {
            return Some(Excess::Network);
        }
        // The access is constant between the paths with rules, so these show every difference.
        let paths = self.rules.iter().chain(&limit.rules);
        paths.map(|rule| &rule.path).find_map(|path| {
            let access = self.access(path);
            (granted(access) > granted(limit.access(path))).then(|| Excess::Access {
                path: path.clone(),
                access,
            })
        })
    }
}

/// Orders accesses by what they permit.
fn granted(access: Access) -> u8 {
    match access {
        Access::Deny => 0,
        Access::Read => 1,
        Access::Write => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Origin, PathState, Rule};

    fn plan(rules: &[(&str, Access)], network: Network) -> Plan {
        let mut rules: Vec<_> = rules
            .iter()
            .map(|(path, access)| {
                let path = PathBuf::from(path);
                Rule::new(path, *access, PathState::Directory, Origin::Entry)
            })
            .collect();
        rules.sort_by(|one, other| one.path.cmp(&other.path));
        rules.dedup_by(|one, other| one.path == other.path);
        Plan {
            rules,
            links: Vec::new(),
            network,
            listen: Vec::new(),
            cwd: PathBuf::from("/"),
            warnings: Vec::new(),
        }
    }

    const LIMIT: [(&str, Access); 4] = [
        ("/", Access::Read),
        ("/ws", Access::Write),
        ("/ws/.git", Access::Read),
        ("/ws/secret", Access::Deny),
    ];

    fn excess(rules: &[(&str, Access)]) -> Option<String> {
        let limit = plan(&LIMIT, Network::Restricted);
        let excess = plan(rules, Network::Restricted).excess_over(&limit)?;
        Some(excess.to_string())
    }

    #[test]
    fn plan_within_its_limit_exceeds_nothing() {
        let read = |path| (path, Access::Read);
        assert_eq!(excess(&LIMIT), None);
        assert_eq!(excess(&[]), None);
        assert_eq!(excess(&[("/ws/a", Access::Write)]), None);
        assert_eq!(excess(&[read("/usr")]), None);
        let narrower = [read("/"), ("/ws/secret", Access::Deny)];
        assert_eq!(excess(&narrower), None);
        let limit = plan(&LIMIT, Network::Enabled);
        for network in [Network::Restricted, Network::Enabled] {
            assert_eq!(plan(&LIMIT, network).excess_over(&limit), None);
        }
    }

    #[test]
    fn every_further_permission_is_an_excess() {
        let with = |more: &[(&'static str, Access)]| {
            let rules = LIMIT.iter().filter(|(path, _)| {
                let replaced = |(other, _): &(&str, Access)| other == path;
                !more.iter().any(replaced)
            });
            let rules: Vec<_> = rules.chain(more).copied().collect();
            excess(&rules)
        };
        let write = |path| (path, Access::Write);
        assert_eq!(with(&[write("/")]).unwrap(), "write access to /");
        assert_eq!(with(&[write("/srv")]).unwrap(), "write access to /srv");
        assert_eq!(
            with(&[write("/ws/.git")]).unwrap(),
            "write access to /ws/.git"
        );
        assert_eq!(
            with(&[write("/ws/.git/hooks")]).unwrap(),
            "write access to /ws/.git/hooks"
        );
        assert_eq!(
            with(&[("/ws/secret", Access::Read)]).unwrap(),
            "read access to /ws/secret"
        );
        assert_eq!(
            with(&[("/ws/secret/x", Access::Read)]).unwrap(),
            "read access to /ws/secret/x"
        );
        // Without the exceptions of the limit.
        assert_eq!(
            excess(&[("/ws", Access::Write)]).unwrap(),
            "write access to /ws/.git"
        );
        let enabled = plan(&LIMIT, Network::Enabled);
        let limit = plan(&LIMIT, Network::Restricted);
        assert_eq!(enabled.excess_over(&limit), Some(Excess::Network));
    }

    fn rules() -> impl Strategy<Value = Vec<(&'static str, Access)>> {
        let paths = ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e"];
        let access = prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Deny)];
        proptest::collection::vec((proptest::sample::select(paths.to_vec()), access), 0..6)
    }

    proptest! {
        #[test]
        fn excess_is_found_if_any_path_has_one(own in rules(), limit in rules()) {
            let own = plan(&own, Network::Restricted);
            let limit = plan(&limit, Network::Restricted);
            let exceeds = ["/", "/x", "/a", "/a/x", "/a/b", "/a/b/x", "/a/b/c", "/a/b/c/x", "/a/d",
                "/a/d/x", "/ab", "/ab/x", "/e", "/e/x"]
                .iter()
                .any(|path| {
                    let path = std::path::Path::new(path);
                    granted(own.access(path)) > granted(limit.access(path))
                });
            prop_assert_eq!(own.excess_over(&limit).is_some(), exceeds);
        }
    }
}
