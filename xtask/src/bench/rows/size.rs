//! The size of the stripped binary.

use anyhow::{Context, Result};

use crate::bench::bound::Bound;
use crate::bench::measurement::{MIB, Measurement, Unit};
use crate::bench::run::Bench;
use crate::command::{self, quiet};

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let stripped = tempfile::NamedTempFile::new()?;
    command::run(
        quiet("strip")
            .arg("-o")
            .args([stripped.path(), &bench.candidates.outpost]),
    )
    .context("stripping the binary (Debian package binutils)")?;
    // By path: strip may replace the file.
    let size = std::fs::metadata(stripped.path())?.len();
    Ok(vec![Measurement {
        name: "size of the stripped binary".to_owned(),
        unit: Unit::Bytes,
        bare: None,
        outpost: size as f64,
        peer: None,
        bounds: vec![Bound::AtMost(24.0 * MIB)],
    }])
}
