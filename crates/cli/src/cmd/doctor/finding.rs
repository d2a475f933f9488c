//! What was found out about this host, and what to do about it.

use outpost_engine::{
    TreeKind,
    sandbox::{Level, Means, Unenforceable},
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
    /// It can't be told before something else works.
    Unknown,
}

/// Everything, in the order in which one would repair it.
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

fn namespaces(host: &Result<Means, Unenforceable>, lacking: State) -> Finding {
    let name = "namespaces";
    match host {
        Ok(_) | Err(Unenforceable::Seccomp { .. }) => {
            works(name, "user, mount, PID, IPC and network")
        }
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

/// Whether processes can be confined here: whether nothing is missing, and what
/// can't be told isn't needed.
pub(super) fn is_well(findings: &[Finding], level: Level) -> bool {
    findings.iter().all(|finding| match finding.state {
        State::Works | State::Absent => true,
        State::Missing => false,
        State::Unknown => level == Level::Landlock,
    })
}
