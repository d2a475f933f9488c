//! What was found out about this host, and what to do about it.

use outpost_engine::{
    TreeKind,
    sandbox::{Level, Means, Mounter, Unenforceable},
};
use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What there is, or isn't.
    pub(super) found: String,
    /// What to do, where something is missing.
    #[serde(rename = "toDo")]
    pub(super) to_do: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    Works,
    /// It isn't there, and the sandbox does without it.
    Absent,
    /// It isn't there, and there is no sandbox without it.
    Missing,
    /// It is the host's own, and nothing is kept apart.
    Shared,
    /// It can't be told before something else works.
    Unknown,
}

/// Everything, in the order in which one would repair it. `host` is what a trial
/// with namespaces has shown, whatever the level.
pub(super) fn findings(
    host: &Result<Means, Unenforceable>,
    landlock: u32,
    level: Level,
    trees: TreeKind,
) -> Vec<Finding> {
    // Who does without namespaces doesn't need what makes them.
    let lacking = match level {
        Level::Namespaces => State::Missing,
        Level::Landlock => State::Absent,
    };
    vec![
        bubblewrap(host, lacking),
        namespaces(host, lacking),
        seccomp(host),
        of_landlock(landlock, level),
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

fn untold(name: &'static str, found: &str) -> Finding {
    Finding {
        name,
        state: State::Unknown,
        found: found.to_owned(),
        to_do: None,
    }
}

fn bubblewrap(host: &Result<Means, Unenforceable>, lacking: State) -> Finding {
    let name = "bubblewrap";
    match host {
        Ok(means) => works(
            name,
            format!("{} at {}", means.version, means.bubblewrap.display()),
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
const SLOWER: &str = "only bubblewrap may mount in them, which takes longer and keeps a little less (docs/sandbox.md)";

fn namespaces(host: &Result<Means, Unenforceable>, lacking: State) -> Finding {
    let name = "namespaces";
    match host {
        Ok(Means {
            mounter: Mounter::Bubblewrap,
            ..
        }) => works(name, format!("{NAMESPACES}; {SLOWER}")),
        Ok(_) | Err(Unenforceable::Seccomp { .. }) => works(name, NAMESPACES),
        Err(Unenforceable::Namespaces { said, remedy }) => {
            lacks(name, lacking, said, &remedy.to_string())
        }
        Err(Unenforceable::Trial { said }) => lacks(
            name,
            lacking,
            format!("the trial failed: {said}"),
            "see what it says",
        ),
        Err(_) => untold(name, "can't be told without bubblewrap"),
    }
}

fn seccomp(host: &Result<Means, Unenforceable>) -> Finding {
    let name = "seccomp";
    match host {
        Ok(_) => works(name, "system calls can be filtered"),
        Err(Unenforceable::Seccomp { said }) => lacks(
            name,
            State::Missing,
            said,
            "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp",
        ),
        Err(_) => untold(name, "can't be told before there are namespaces"),
    }
}

fn of_landlock(version: u32, level: Level) -> Finding {
    let name = "landlock";
    let to_do = "use a kernel from 5.13 on, with landlock among its security modules (lsm=)";
    match (version, level) {
        (0, Level::Namespaces) => lacks(
            name,
            State::Absent,
            "not in this kernel; the other two layers stand without it",
            to_do,
        ),
        (0, Level::Landlock) => lacks(name, State::Missing, "not in this kernel", to_do),
        (version, _) => works(name, format!("ABI {version}")),
    }
}

/// What is within reach of a process that has a network.
fn sockets(landlock: u32) -> Finding {
    let found = match landlock {
        ..6 => "where granted: loopback ports, Outpost's among them, and all unix sockets",
        _ => {
            "where granted: loopback ports, Outpost's among them, and unix sockets that have a path"
        }
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
    let to_do = "run the server where it has a cgroup v2 of its own, such as a systemd unit with Delegate=yes";
    match trees {
        TreeKind::Cgroup => works(name, "each process has its own"),
        TreeKind::Keeper => lacks(
            name,
            State::Absent,
            "trees are kept by keepers, which do as well",
            to_do,
        ),
        TreeKind::Group => lacks(
            name,
            State::Absent,
            "trees are kept by process groups, which a daemon can escape",
            to_do,
        ),
    }
}

#[cfg(test)]
mod tests {
    use outpost_engine::sandbox::Remedy;

    use super::*;

    fn states(host: &Result<Means, Unenforceable>, landlock: u32, level: Level) -> Vec<State> {
        let all = findings(host, landlock, level, TreeKind::Keeper);
        all.iter().map(|finding| finding.state).collect()
    }

    fn means() -> Means {
        Means {
            bubblewrap: "/usr/bin/bwrap".into(),
            version: "bubblewrap 0.8.0".to_owned(),
            mounter: Mounter::Stage,
            landlock: 7,
        }
    }

    #[test]
    fn a_host_that_has_everything_is_well() {
        let all = findings(&Ok(means()), 7, Level::Namespaces, TreeKind::Cgroup);
        assert!(all[..5].iter().all(|finding| finding.state == State::Works));
        assert!(all.iter().all(|finding| finding.to_do.is_none()));
        assert_eq!(all[0].found, "bubblewrap 0.8.0 at /usr/bin/bwrap");
        assert_eq!(all[3].found, "ABI 7");
        assert!(all[5].found.contains("loopback ports"), "{all:?}");
        assert!(all[5].found.contains("that have a path"), "{all:?}");
        let older = findings(&Ok(means()), 5, Level::Namespaces, TreeKind::Cgroup);
        assert!(older[5].found.contains("all unix sockets"), "{older:?}");
    }

    #[test]
    fn landlock_and_cgroups_can_be_done_without() {
        let all = findings(&Ok(means()), 0, Level::Namespaces, TreeKind::Group);
        assert_eq!(all[3].state, State::Absent);
        assert_eq!(all[4].state, State::Absent);
        assert!(all[4].to_do.is_some());
    }

    #[test]
    fn what_is_missing_is_told_and_what_comes_behind_it_is_not() {
        use State::{Absent, Missing, Shared, Unknown, Works};
        let missing = Err(Unenforceable::NoBubblewrap);
        assert_eq!(
            states(&missing, 7, Level::Namespaces),
            [Missing, Unknown, Unknown, Works, Absent, Shared]
        );
        let forbidden = Err(Unenforceable::Namespaces {
            said: "no".to_owned(),
            remedy: Remedy::UnprivilegedClone,
        });
        assert_eq!(
            states(&forbidden, 7, Level::Namespaces),
            [Works, Missing, Unknown, Works, Absent, Shared]
        );
        let all = findings(&forbidden, 7, Level::Namespaces, TreeKind::Keeper);
        let to_do = all[1].to_do.as_deref().unwrap_or_default();
        assert!(
            to_do.contains("kernel.unprivileged_userns_clone"),
            "{to_do}"
        );
        // Who has chosen to do without namespaces doesn't miss them.
        assert_eq!(
            states(&missing, 7, Level::Landlock),
            [Absent, Unknown, Unknown, Works, Absent, Shared]
        );
        assert_eq!(states(&missing, 0, Level::Landlock)[3], Missing);
        let filter = Err(Unenforceable::Seccomp {
            said: "no".to_owned(),
        });
        assert_eq!(
            states(&filter, 7, Level::Namespaces),
            [Works, Works, Missing, Works, Absent, Shared]
        );
    }
}
