//! Checks of what this host can enforce.

use std::collections::BTreeMap;

use outpost_engine::{
    LimitName, TreeKind,
    sandbox::{HostSupport, Level, Mounter, Unenforceable},
};

use super::{Check, Finding, State, lacks, unknown, works};

const NAMESPACES: &str = "user, mount, PID, IPC and network";
const SLOWER: &str = "only bubblewrap may mount in them, which is slower and enforces slightly less (docs/sandbox.md)";

/// The checks in the order of repair. `host` is the result of a trial with namespaces, at any
/// level.
pub(super) fn findings(
    host: &Result<HostSupport, Unenforceable>,
    landlock: u32,
    level: Level,
    trees: TreeKind,
) -> Vec<Finding> {
    // The Landlock level doesn't need namespaces.
    let lacking = match level {
        Level::Namespaces => State::Missing,
        Level::Landlock => State::Absent,
    };
    let checks = [
        ("bubblewrap", bubblewrap(host, lacking)),
        ("namespaces", namespaces(host, lacking)),
        ("seccomp", seccomp(host)),
        ("landlock", landlock_support(landlock, level)),
        ("cgroups", cgroups(trees)),
        ("network", sockets(landlock)),
    ];
    let finding = |(name, check)| Finding::new(name, check);
    checks.map(finding).into()
}

/// Which limits of a process can be enforced.
pub(super) fn limits(unenforceable: &BTreeMap<LimitName, String>) -> Check {
    let Some(reason) = unenforceable.values().next() else {
        return works("all can be enforced");
    };
    let names: Vec<_> = unenforceable.keys().map(|name| name.as_str()).collect();
    let found = format!("these are refused: {}", names.join(", "));
    lacks(State::Absent, found, reason)
}

fn bubblewrap(host: &Result<HostSupport, Unenforceable>, lacking: State) -> Check {
    match host {
        Ok(support) => {
            let path = support.bubblewrap.display();
            works(format!("{} at {path}", support.version))
        }
        Err(Unenforceable::NoBubblewrap) => {
            let to_do = "install the package bubblewrap";
            lacks(lacking, "bwrap isn't on the PATH", to_do)
        }
        Err(Unenforceable::OldBubblewrap { found }) => {
            let to_do = "install version 0.8 or newer of the package bubblewrap";
            lacks(lacking, format!("{found} is too old"), to_do)
        }
        Err(_) => works("found"),
    }
}

fn namespaces(host: &Result<HostSupport, Unenforceable>, lacking: State) -> Check {
    match host {
        Ok(support) if support.mounter == Mounter::Bubblewrap => {
            works(format!("{NAMESPACES}; {SLOWER}"))
        }
        Ok(_) | Err(Unenforceable::Seccomp { .. }) => works(NAMESPACES),
        Err(Unenforceable::Namespaces { message, remedy }) => {
            lacks(lacking, message, &remedy.to_string())
        }
        Err(Unenforceable::Probe { message }) => {
            let found = format!("the probe failed: {message}");
            lacks(lacking, found, "see the message")
        }
        Err(_) => unknown("unknown without bubblewrap"),
    }
}

fn seccomp(host: &Result<HostSupport, Unenforceable>) -> Check {
    match host {
        Ok(support) if support.unix_sockets => works("system calls can be filtered"),
        Ok(_) => works("system calls can be filtered; no unix sockets without a network"),
        Err(Unenforceable::Seccomp { message }) => lacks(
            State::Missing,
            message,
            "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp",
        ),
        Err(_) => unknown("unknown without namespaces"),
    }
}

fn landlock_support(version: u32, level: Level) -> Check {
    let to_do = "use a kernel from 5.13 on, with landlock among its security modules (lsm=)";
    match (version, level) {
        (0, Level::Namespaces) => {
            let found = "not in this kernel; the other layers work without it";
            lacks(State::Absent, found, to_do)
        }
        (0, Level::Landlock) => lacks(State::Missing, "not in this kernel", to_do),
        (version, _) => works(format!("ABI {version}")),
    }
}

/// Sockets that a process with network access can reach.
fn sockets(landlock: u32) -> Check {
    let found = match landlock {
        ..6 => "if granted: loopback ports, including Outpost's, and all unix sockets",
        _ => "if granted: loopback ports, including Outpost's, and unix sockets with a path",
    };
    (State::Shared, found.to_owned(), None)
}

fn cgroups(trees: TreeKind) -> Check {
    let found = match trees {
        TreeKind::Cgroup => return works("each process has one"),
        TreeKind::Subreaper => "subreapers are used, which work as well",
        TreeKind::Group => "process groups are used, which a daemon can escape",
    };
    let to_do =
        "run the server in a cgroup v2 of its own, such as a systemd unit with Delegate=yes";
    lacks(State::Absent, found, to_do)
}

#[cfg(test)]
mod tests {
    use outpost_engine::sandbox::Remedy;

    use super::*;

    fn states(
        host: &Result<HostSupport, Unenforceable>,
        landlock: u32,
        level: Level,
    ) -> Vec<State> {
        let all = findings(host, landlock, level, TreeKind::Subreaper);
        all.iter().map(|finding| finding.state).collect()
    }

    fn support() -> HostSupport {
        HostSupport {
            bubblewrap: "/usr/bin/bwrap".into(),
            version: "bubblewrap 0.8.0".to_owned(),
            mounter: Mounter::Helper,
            landlock: 7,
            unix_sockets: true,
        }
    }

    #[test]
    fn fully_capable_host_passes() {
        let all = findings(&Ok(support()), 7, Level::Namespaces, TreeKind::Cgroup);
        assert!(all[..5].iter().all(|finding| finding.state == State::Works));
        assert!(all.iter().all(|finding| finding.to_do.is_none()));
        assert_eq!(all[0].found, "bubblewrap 0.8.0 at /usr/bin/bwrap");
        assert_eq!(all[3].found, "ABI 7");
        assert!(all[5].found.contains("loopback ports"), "{all:?}");
        assert!(all[5].found.contains("with a path"), "{all:?}");
        let older = findings(&Ok(support()), 5, Level::Namespaces, TreeKind::Cgroup);
        assert!(older[5].found.contains("all unix sockets"), "{older:?}");
    }

    #[test]
    fn limits_without_a_controller_are_named_with_the_remedy() {
        assert_eq!(limits(&BTreeMap::new()).0, State::Works);
        let reason = "run it with Delegate=yes".to_owned();
        let (state, found, to_do) = limits(&BTreeMap::from([
            (LimitName::MemoryBytes, reason.clone()),
            (LimitName::Cpus, reason.clone()),
        ]));
        assert_eq!(state, State::Absent);
        assert!(
            found.contains("memoryBytes") && found.contains("cpus"),
            "{found}"
        );
        assert_eq!(to_do, Some(reason));
    }

    #[test]
    fn landlock_and_cgroups_are_optional() {
        let all = findings(&Ok(support()), 0, Level::Namespaces, TreeKind::Group);
        assert_eq!(all[3].state, State::Absent);
        assert_eq!(all[4].state, State::Absent);
        assert!(all[4].to_do.is_some());
    }

    #[test]
    fn missing_feature_is_reported_and_dependent_checks_are_unknown() {
        use State::{Absent, Missing, Shared, Unknown, Works};
        let missing = Err(Unenforceable::NoBubblewrap);
        assert_eq!(
            states(&missing, 7, Level::Namespaces),
            [Missing, Unknown, Unknown, Works, Absent, Shared]
        );
        let forbidden = Err(Unenforceable::Namespaces {
            message: "no".to_owned(),
            remedy: Remedy::UnprivilegedClone,
        });
        assert_eq!(
            states(&forbidden, 7, Level::Namespaces),
            [Works, Missing, Unknown, Works, Absent, Shared]
        );
        let all = findings(&forbidden, 7, Level::Namespaces, TreeKind::Subreaper);
        let to_do = all[1].to_do.as_deref().unwrap_or_default();
        assert!(
            to_do.contains("kernel.unprivileged_userns_clone"),
            "{to_do}"
        );
        // The Landlock level doesn't need namespaces.
        assert_eq!(
            states(&missing, 7, Level::Landlock),
            [Absent, Unknown, Unknown, Works, Absent, Shared]
        );
        assert_eq!(states(&missing, 0, Level::Landlock)[3], Missing);
        let filter = Err(Unenforceable::Seccomp {
            message: "no".to_owned(),
        });
        assert_eq!(
            states(&filter, 7, Level::Namespaces),
            [Works, Works, Missing, Works, Absent, Shared]
        );
    }
}
