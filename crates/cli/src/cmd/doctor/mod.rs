//! `outpost doctor`: checks what this host can enforce.

mod finding;

use std::{io, process::ExitCode};

use anyhow::Context;
use outpost_engine::{Spawner, SpawnerOptions, sandbox::Level};
use serde_json::json;

use self::finding::{Finding, State};
use crate::{
    args::Doctor,
    cmd::{confine, subreaper},
    config::{self, Layer, Source},
    render::{
        explanation::level_name,
        out,
        style::{Style, Styler},
        table::{self, Cell},
    },
};

pub(crate) fn run(args: &Doctor) -> ExitCode {
    out::finish(examine(args))
}

fn examine(args: &Doctor) -> anyhow::Result<ExitCode> {
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let config = layers.config()?;
    let level = config.sandbox.level;
    let spawner = Spawner::new(SpawnerOptions {
        trees: config.trees,
        subreaper: Some(subreaper::command()),
        ..SpawnerOptions::default()
    })
    .context("cannot set up process spawning")?;
    let host = confine::sandbox(Level::Namespaces).preflight();
    let works = match level {
        Level::Namespaces => host.is_ok(),
        Level::Landlock => confine::sandbox(level).preflight().is_ok(),
    };
    let landlock = outpost_engine::sandbox::landlock_version().unwrap_or(0);
    let findings = finding::findings(&host, landlock, level, spawner.tree_kind());
    if args.json {
        let report = json!({"works": works, "level": level_name(level), "checks": findings});
        out::lines([format!("{report:#}")])?;
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
    let styler = Styler::on(&io::stdout());
    let rows: Vec<_> = findings.iter().map(row).collect();
    let mut lines = table::lines(["CHECK", "STATE", "FOUND"], &rows, out::width(), styler);
    for finding in findings {
        if let Some(to_do) = &finding.to_do {
            lines.push(format!(
                "\n{}: {to_do}",
                styler.apply(Style::Bold, finding.name)
            ));
        }
    }
    lines.push(String::new());
    lines.push(match (works, level) {
        (true, Level::Namespaces) => styler.apply(Style::Good, "Sandboxing works on this host."),
        (true, Level::Landlock) => styler.apply(
            Style::Good,
            "Sandboxing works on this host, with the weaker isolation of sandbox.level = \"landlock\".",
        ),
        (false, _) => styler.apply(
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
