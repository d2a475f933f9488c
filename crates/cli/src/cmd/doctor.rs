//! `outpost doctor`: checks what this host can enforce.

use std::process::ExitCode;

use anyhow::Context;
use outpost_engine::{
    Spawner, SpawnerOptions, TreeKind,
    sandbox::{HostSupport, Level, Mounter, Unenforceable},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    cmd::hidden,
    config,
    render::{
        out,
        screen::{Cell, Screen, Style},
        visible::visible,
    },
};

const NAMESPACES: &str = "user, mount, PID, IPC and network";
const SLOWER: &str = "only bubblewrap may mount in them, which is slower and enforces slightly less (docs/sandbox.md)";

/// Arguments of `outpost doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost doctor
  outpost doctor --json | jq '.checks[] | select(.state != \"works\")'

The exit code is 0 if sandboxing works on this host, and 1 otherwise.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    /// The result.
    found: String,
    /// The remedy, if something is missing.
    #[serde(rename = "toDo")]
    to_do: Option<String>,
}

/// The result's severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
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

/// Examines this host. The exit code tells whether sandboxing works.
pub(crate) fn doctor(args: &Doctor) -> anyhow::Result<ExitCode> {
    let config = config::load_config(None)?;
    let level = config.sandbox.level;
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        subreaper: Some(hidden::subreaper_command()),
        ..SpawnerOptions::default()
    })
    .context("cannot set up process spawning")?;
    let host = hidden::sandbox(Level::Namespaces, None).preflight();
    let works = match level {
        Level::Namespaces => host.is_ok(),
        Level::Landlock => hidden::sandbox(level, None).preflight().is_ok(),
    };
    let landlock = outpost_engine::sandbox::landlock_version().unwrap_or(0);
    let findings = findings(&host, landlock, level, spawner.tree_kind());
    if args.json {
        out::json(&json!({"works": works, "level": level, "checks": findings}))?;
    } else {
        out::raw_lines(report(&findings, works, level))?;
    }
    Ok(if works {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(findings: &[Finding], works: bool, level: Level) -> Vec<String> {
    let screen = Screen::stdout();
    let rows: Vec<_> = findings.iter().map(row).collect();
    let mut lines = screen.table(["CHECK", "STATE", "FOUND"], &rows);
    for finding in findings {
        if let Some(to_do) = &finding.to_do {
            lines.push(format!(
                "\n{}: {}",
                screen.apply(Style::Bold, finding.name),
                visible(to_do)
            ));
        }
    }
    lines.push(String::new());
    lines.push(match (works, level) {
        (true, Level::Namespaces) => screen.apply(Style::Good, "Sandboxing works on this host."),
        (true, Level::Landlock) => screen.apply(
            Style::Good,
            "Sandboxing works on this host, with the weaker isolation of sandbox.level = \"landlock\".",
        ),
        (false, _) => screen.apply(
            Style::Bad,
            "Sandboxing does not work on this host; requests for it are rejected.",
        ),
    });
    lines
}

fn row(finding: &Finding) -> [Cell; 3] {
    let (word, style) = match finding.state {
        State::Works => ("works", Style::Good),
        State::Absent => ("absent", Style::Quiet),
        State::Missing => ("missing", Style::Bad),
        State::Shared => ("shared", Style::Quiet),
        State::Unknown => ("unknown", Style::Quiet),
    };
    [
        Cell::plain(finding.name),
        Cell::styled(word, style),
        Cell::plain(&*finding.found),
    ]
}

/// All checks, in the order of repair. `host` is the result of a trial with namespaces, at any
/// level.
fn findings(
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
    let finding = |(name, (state, found, to_do))| Finding {
        name,
        state,
        found,
        to_do,
    };
    checks.map(finding).into()
}

/// The state, the result, and the remedy if something is missing.
type Check = (State, String, Option<String>);

fn works(found: impl Into<String>) -> Check {
    (State::Works, found.into(), None)
}

fn lacks(state: State, found: impl Into<String>, to_do: &str) -> Check {
    (state, found.into(), Some(to_do.to_owned()))
}

fn unknown(found: &str) -> Check {
    (State::Unknown, found.to_owned(), None)
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
