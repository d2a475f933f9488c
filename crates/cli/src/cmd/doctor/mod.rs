//! `outpost doctor`: checks what this host can enforce.

mod finding;

use std::process::ExitCode;

use anyhow::Context;
use outpost_engine::{Spawner, SpawnerOptions, sandbox::Level};
use serde_json::json;

use self::finding::{Finding, State};
use crate::{
    cmd::helpers,
    config,
    render::{
        out,
        screen::{Cell, Screen, Style},
    },
};

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

/// Examines this host. The exit code tells whether sandboxing works.
pub(crate) fn doctor(args: &Doctor) -> anyhow::Result<ExitCode> {
    let config = config::load_config(None)?;
    let level = config.sandbox.level;
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        subreaper: Some(helpers::subreaper_command()),
        ..SpawnerOptions::default()
    })
    .context("cannot set up process spawning")?;
    let host = helpers::sandbox(Level::Namespaces).preflight();
    let works = match level {
        Level::Namespaces => host.is_ok(),
        Level::Landlock => helpers::sandbox(level).preflight().is_ok(),
    };
    let landlock = outpost_engine::sandbox::landlock_version().unwrap_or(0);
    let findings = finding::findings(&host, landlock, level, spawner.tree_kind());
    if args.json {
        out::json(&json!({"works": works, "level": level, "checks": findings}))?;
    } else {
        out::lines(report(&findings, works, level))?;
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
                "\n{}: {to_do}",
                screen.apply(Style::Bold, finding.name)
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
