//! Checks of this host, with remedies.

use outpost_engine::{
    TreeKind,
    sandbox::{HostSupport, Level, Mounter, Unenforceable},
};
use serde::Serialize;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// The result.
    pub(super) found: String,
    /// The remedy, if something is missing.
    #[serde(rename = "toDo")]
    pub(super) to_do: Option<String>,
}

/// The result's severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    Works,
    /// Missing, and optional.
    Absent,
    /// Missing, and required.
    Missing,
    /// Not isolated from the host.
    Shared,
    /// Unknown until another check passes.
    Unknown,
}

/// All checks, in the order of repair. `host` is the result of a trial with namespaces, at any
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
    vec![
        bubblewrap(host, lacking),
        namespaces(host, lacking),
        seccomp(host),
        landlock_finding(landlock, level),
        cgroups(trees),
        sockets(landlock),
    ]
}

fn works(name: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        name,
        state: State::Works,
        found: found.into(),
        to_do: None,
    }
}

fn lacks(name: &'static str, state: State, found: impl Into<String>, to_do: &str) -> Finding {
    Finding {
        name,
        state,
        found: found.into(),
        to_do: Some(to_do.to_owned()),
    }
}

fn unknown(name: &'static str, found: &str) -> Finding {
    Finding {
        name,
        state: State::Unknown,
        found: found.to_owned(),
        to_do: None,
    }
}

fn bubblewrap(host: &Result<HostSupport, Unenforceable>, lacking: State) -> Finding {
    let name = "bubblewrap";
    match host {
        Ok(support) => works(
            name,
            format!("{} at {}", support.version, support.bubblewrap.display()),
        ),
        Err(Unenforceable::NoBubblewrap) => lacks(
            name,
            lacking,
            "bwrap isn't on the PATH",
            "install the package bubblewrap",
        ),
        Err(Unenforceable::OldBubblewrap { found }) => lacks(
            name,
            lacking,
            format!("{found} is too old"),
            "install version 0.8 or newer of the package bubblewrap",
        ),
        Err(_) => works(name, "found"),
    }
}

const NAMESPACES: &str = "user, mount, PID, IPC and network";
const SLOWER: &str = "only bubblewrap may mount in them, which is slower and enforces slightly less (docs/sandbox.md)";

fn namespaces(host: &Result<HostSupport, Unenforceable>, lacking: State) -> Finding {
    let name = "namespaces";
    match host {
        Ok(HostSupport {
            mounter: Mounter::Bubblewrap,
            ..
        }) => works(name, format!("{NAMESPACES}; {SLOWER}")),
        Ok(_) | Err(Unenforceable::Seccomp { .. }) => works(name, NAMESPACES),
        Err(Unenforceable::Namespaces { message, remedy }) => {
            lacks(name, lacking, message, &remedy.to_string())
        }
        Err(Unenforceable::Probe { message }) => lacks(
            name,
            lacking,
            format!("the probe failed: {message}"),
            "see the message",
        ),
        Err(_) => unknown(name, "unknown without bubblewrap"),
    }
}

fn seccomp(host: &Result<HostSupport, Unenforceable>) -> Finding {
    let name = "seccomp";
    match host {
        Ok(_) => works(name, "system calls can be filtered"),
        Err(Unenforceable::Seccomp { message }) => lacks(
            name,
            State::Missing,
            message,
            "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp",
        ),
        Err(_) => unknown(name, "unknown without namespaces"),
    }
}

fn landlock_finding(version: u32, level: Level) -> Finding {
    let name = "landlock";
    let to_do = "use a kernel from 5.13 on, with landlock among its security modules (lsm=)";
    match (version, level) {
        (0, Level::Namespaces) => lacks(
            name,
            State::Absent,
            "not in this kernel; the other layers work without it",
            to_do,
        ),
        (0, Level::Landlock) => lacks(name, State::Missing, "not in this kernel", to_do),
        (version, _) => works(name, format!("ABI {version}")),
    }
}

/// Sockets that a process with network access can reach.
fn sockets(landlock: u32) -> Finding {
    let found = match landlock {
        ..6 => "if granted: loopback ports, including Outpost's, and all unix sockets",
        _ => "if granted: loopback ports, including Outpost's, and unix sockets with a path",
    };
    Finding {
        name: "network",
        state: State::Shared,
        found: found.to_owned(),
        to_do: None,
    }
}

fn cgroups(trees: TreeKind) -> Finding {
    let name = "cgroups";
    let to_do =
        "run the server in a cgroup v2 of its own, such as a systemd unit with Delegate=yes";
    match trees {
        TreeKind::Cgroup => works(name, "each process has one"),
        TreeKind::Subreaper => lacks(
            name,
            State::Absent,
            "subreapers are used, which work as well",
            to_do,
        ),
        TreeKind::Group => lacks(
            name,
            State::Absent,
            "process groups are used, which a daemon can escape",
            to_do,
        ),
    }
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
