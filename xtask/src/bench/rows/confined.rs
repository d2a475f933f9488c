//! A confined command compared with an unconfined one.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::rounds::compare;
use crate::bench::run::Bench;

use super::one_shot::{p50, served_with};

/// A typical policy of a coding agent.
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

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(100, 20);
    let project = tempfile::tempdir()?;
    fs::create_dir(project.path().join(".git"))?;
    let sandbox = workspace(&project.path().canonicalize()?);
    let medians = compare(bench, bench.rounds, None, ConnectedServer::open, |link| {
        let unconfined = Start::default();
        let confined = Start {
            sandbox: Some(&sandbox),
            ..Start::default()
        };
        Ok([
            p50(count, || served_with(&mut link.client, unconfined))?,
            p50(count, || served_with(&mut link.client, confined))?,
        ])
    })?;
    let [unconfined, confined] = medians.outpost;
    Ok(vec![Measurement {
        name: "confined one-shot beside an unconfined one, p50".to_owned(),
        unit: Unit::Millis,
        bare: Some(unconfined),
        outpost: confined,
        peer: medians.peer.map(|[_, confined]| confined),
        bounds: vec![Bound::AboveAtMost(8.0)],
    }])
}
