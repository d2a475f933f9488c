//! `outpost doctor`: what this host can enforce, and what to do where it can't.

mod finding;

use std::{io, process::ExitCode};

use anyhow::Context;
use outpost_engine::{Spawner, SpawnerOptions, sandbox::Level};
use serde_json::json;

use self::finding::{Finding, State};
use crate::{
    args::Doctor,
    cmd::{confine, keeper},
    config::{self, Layer, Source},
    render::{
        explanation::level_word,
        out,
        paint::{Paint, Tone},
        table::{self, Cell},
    },
};

pub(crate) fn run(args: &Doctor) -> ExitCode {
    out::conclude(examine(args))
}

fn examine(args: &Doctor) -> anyhow::Result<ExitCode> {
    let layers = config::load(Layer::new(Source::CommandLine), None)?;
    let in_force = layers.in_force()?;
    let level = in_force.sandbox_level;
    let spawner = Spawner::new(SpawnerOptions {
        trees: in_force.trees,
        keeper: Some(keeper::command()),
        ..SpawnerOptions::default()
    })
    .context("cannot prepare to start processes")?;
    let host = confine::sandbox(Level::Namespaces).preflight();
    let well = match level {
        Level::Namespaces => host.is_ok(),
        Level::Landlock => confine::sandbox(level).preflight().is_ok(),
    };
    let landlock = outpost_engine::sandbox::landlock_version().unwrap_or(0);
    let findings = finding::findings(&host, landlock, level, spawner.tree_kind());
    if args.json {
        let told = json!({"works": well, "level": level_word(level), "checks": findings});
        out::lines([format!("{told:#}")])?;
    } else {
        out::lines(told(&findings, well, level))?;
    }
    Ok(match well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn told(findings: &[Finding], well: bool, level: Level) -> Vec<String> {
    let paint = Paint::on(&io::stdout());
    let rows: Vec<_> = findings.iter().map(row).collect();
    let mut lines = table::lines(["CHECK", "STATE", "FOUND"], &rows, out::width(), paint);
    for finding in findings {
        if let Some(to_do) = &finding.to_do {
            lines.push(format!(
                "\n{}: {to_do}",
                paint.dye(Tone::Bold, finding.name)
            ));
        }
    }
    lines.push(String::new());
    lines.push(match (well, level) {
        (true, Level::Namespaces) => paint.dye(Tone::Good, "Processes can be confined here."),
        (true, Level::Landlock) => paint.dye(
            Tone::Good,
            "Processes can be confined here, with the weaker promise of sandbox.level = \"landlock\".",
        ),
        (false, _) => paint.dye(
            Tone::Bad,
            "Processes can't be confined here; who asks for it is refused.",
        ),
    });
    lines
}

fn row(finding: &Finding) -> [Cell; 3] {
    let (word, tone) = match finding.state {
        State::Works => ("works", Tone::Good),
        State::Absent => ("absent", Tone::Quiet),
        State::Missing => ("missing", Tone::Bad),
        State::Shared => ("shared", Tone::Quiet),
        State::Unknown => ("unknown", Tone::Quiet),
    };
    [
        Cell::plain(finding.name),
        Cell::toned(word, tone),
        Cell::plain(&*finding.found),
    ]
}
