//! Commands of a login shell with a slow profile.

use anyhow::Result;
use serde_json::json;

use super::commands::{p50, run_start};
use crate::bench::client::{ConnectedServer, Start};
use crate::bench::measurement::{Bound, Measurement, Unit};
use crate::bench::rounds::{Medians, compare, millis};
use crate::bench::run::Bench;

/// A profile that takes 100 ms.
const PROFILE: &str = "sleep 0.1\n";

/// Compares commands with a snapshot of their login shell with plain ones: the first one, which captures
/// it, and later ones.
pub(super) fn login(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(20, 5);
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join(".bash_profile"), PROFILE)?;
    let home = home.path().to_string_lossy().into_owned();
    let medians = compare(bench, bench.rounds, None, ConnectedServer::open, |link| {
        let plain = Start {
            argv: &["/bin/bash", "-lc", "true"],
            home: Some(&home),
            ..Start::default()
        };
        let client = &mut link.client;
        // Different scopes, so that each round captures.
        let (_, unique) = client.start(Start::new(&["/usr/bin/true"]))?;
        let snapshot = json!({
            "scopeId": unique,
            "shell": {"name": "bash", "path": "/bin/bash"},
        });
        let with_snapshot = Start {
            shell_snapshot: Some(&snapshot),
            ..plain
        };
        let beside = p50(count, || run_start(client, plain))?;
        let first = millis(run_start(client, with_snapshot)?);
        let later = p50(count, || run_start(client, with_snapshot))?;
        Ok([beside, first, later])
    })?;
    let beside = |[plain, first, later]: [f64; 3]| ([plain, plain], [first, later]);
    let (plain, outpost) = beside(medians.outpost);
    let medians = Medians {
        bare: Some(plain),
        outpost,
        peer: medians.peer.map(|peer| beside(peer).1),
    };
    let name = "login shell with a snapshot beside a plain one";
    Ok(medians.lines([
        (
            format!("{name}, first"),
            Unit::Millis,
            vec![Bound::RatioAtMost(1.2)],
        ),
        (
            format!("{name}, later, p50"),
            Unit::Millis,
            vec![Bound::RatioAtMost(0.1)],
        ),
    ]))
}
