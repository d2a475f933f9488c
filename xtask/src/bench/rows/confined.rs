//! A confined command beside a free one: what the sandbox costs.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::link::Link;
use crate::bench::run::Bench;

use super::one_shot::{p50, served_as};

/// What may be done in a project, as coding agents ask for it.
fn workspace(root: &Path) -> String {
    let special = |kind: &str, more: &str, access: &str| {
        format!(
            r#"{{"path":{{"type":"special","value":{{"kind":"{kind}"{more}}}}},"access":"{access}"}}"#
        )
    };
    let entries = [
        special("root", "", "read"),
        special("project_roots", "", "write"),
        special("slash_tmp", "", "write"),
        special("tmpdir", "", "write"),
        special("project_roots", r#","subpath":".git""#, "read"),
    ]
    .join(",");
    let root = format!("file://{}", root.display());
    format!(
        r#"{{"permissions":{{"type":"managed","file_system":{{"type":"restricted","entries":[{entries}]}},"network":"restricted"}},"cwd":"{root}","workspaceRoots":["{root}"]}}"#
    )
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let count = bench.amount(100, 20);
    let project = tempfile::tempdir()?;
    fs::create_dir(project.path().join(".git"))?;
    let sandbox = workspace(&project.path().canonicalize()?);
    let medians = compare(bench, bench.rounds, None, Link::open, |link| {
        let free = Start::default();
        let confined = Start {
            sandbox: Some(&sandbox),
            ..Start::default()
        };
        Ok([
            p50(count, || served_as(&mut link.client, free))?,
            p50(count, || served_as(&mut link.client, confined))?,
        ])
    })?;
    let [free, confined] = medians.outpost;
    Ok(vec![Line {
        name: "confined one-shot beside a free one, p50".to_owned(),
        unit: Unit::Millis,
        bare: Some(free),
        outpost: confined,
        peer: medians.peer.map(|[_, confined]| confined),
        bounds: vec![Bound::AboveAtMost(8.0)],
    }])
}
