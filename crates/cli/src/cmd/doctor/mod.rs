//! `outpost doctor`: checks this host and the configuration.
//!
//! - [`sandboxing`]: what this host can enforce
//! - [`credentials`]: the server's certificate, and the files of tokens and keys
//! - [`principals`]: whether the limits of principals can be enforced
//! - [`hosts`]: whether the configured hosts can be reached

mod credentials;
mod hosts;
mod principals;
mod sandboxing;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use outpost_engine::{Spawner, SpawnerOptions, sandbox::Level};
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

/// Arguments of `outpost doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost doctor
  outpost doctor --config /etc/outpost/outpost.toml
  outpost doctor --json | jq '.checks[] | select(.state != \"works\")'

The exit code is 0 if sandboxing works on this host, the configured certificate, tokens and keys
can be used, and the limits of principals can be enforced; otherwise it is 1. Run it as the user of
the server, and in a unit like the server's to check its cgroups.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: String,
    state: State,
    /// The result.
    found: String,
    /// The remedy, if something is missing.
    #[serde(rename = "toDo")]
    to_do: Option<String>,
}

/// The state, the result, and the remedy if something is missing.
type Check = (State, String, Option<String>);

/// The result's severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Works,
    /// Works, but not for long.
    Expiring,
    /// Missing, and optional.
    Absent,
    /// Missing, and required.
    Missing,
    /// Configured, and not usable.
    Failed,
    /// Not isolated from the host.
    Shared,
    /// Unknown until another check passes.
    Unknown,
}

impl Finding {
    fn new(name: &str, (state, found, to_do): Check) -> Self {
        Finding {
            name: name.to_owned(),
            state,
            found,
            to_do,
        }
    }
}

fn works(found: impl Into<String>) -> Check {
    (State::Works, found.into(), None)
}

fn lacks(state: State, found: impl Into<String>, to_do: &str) -> Check {
    (state, found.into(), Some(to_do.to_owned()))
}

/// A failure whose message contains the remedy, if there is one.
fn failed(found: impl Into<String>) -> Check {
    (State::Failed, found.into(), None)
}

fn unknown(found: impl Into<String>) -> Check {
    (State::Unknown, found.into(), None)
}

/// Examines this host and the configuration. The exit code tells whether a server could start and
/// confine processes.
pub(crate) async fn doctor(args: &Doctor) -> anyhow::Result<ExitCode> {
    let config = config::load_config(args.config.clone())?;
    let level = config.sandbox.level;
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        subreaper: Some(hidden::subreaper_command()),
        moves_own_cgroup: true,
        ..SpawnerOptions::default()
    })
    .context("cannot set up process spawning")?;
    let host = hidden::sandbox(Level::Namespaces, None).preflight();
    let works = match level {
        Level::Namespaces => host.is_ok(),
        Level::Landlock => hidden::sandbox(level, None).preflight().is_ok(),
    };
    let landlock = outpost_engine::sandbox::landlock_version().unwrap_or(0);
    let mut findings = sandboxing::findings(&host, landlock, level, spawner.tree_kind());
    let unenforceable = spawner.unenforceable_limits();
    findings.push(Finding::new("limits", sandboxing::limits(&unenforceable)));
    let mut configured = principals::findings(&config, &unenforceable);
    configured.extend(credentials::findings(&config));
    let usable = configured
        .iter()
        .all(|finding| finding.state != State::Failed);
    findings.extend(configured);
    findings.extend(hosts::findings(config.hosts()?).await);
    if args.json {
        out::json(&json!({"works": works, "level": level, "checks": findings}))?;
    } else {
        out::raw_lines(report(&findings, works, level))?;
    }
    Ok(if works && usable {
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
                screen.apply(Style::Bold, &finding.name),
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
    let failed = findings
        .iter()
        .filter(|finding| finding.state == State::Failed);
    let failed: Vec<_> = failed.map(|finding| &*finding.name).collect();
    if !failed.is_empty() {
        let failed = format!("Failed: {}.", visible(&failed.join(", ")));
        lines.push(screen.apply(Style::Bad, &failed));
    }
    lines
}

fn row(finding: &Finding) -> [Cell; 3] {
    let (word, style) = match finding.state {
        State::Works => ("works", Style::Good),
        State::Expiring => ("expiring", Style::Bad),
        State::Absent => ("absent", Style::Quiet),
        State::Missing => ("missing", Style::Bad),
        State::Failed => ("failed", Style::Bad),
        State::Shared => ("shared", Style::Quiet),
        State::Unknown => ("unknown", Style::Quiet),
    };
    [
        Cell::plain(&*finding.name),
        Cell::styled(word, style),
        Cell::plain(&*finding.found),
    ]
}
