//! The binary, without what only a debugger needs.

use anyhow::{Context, Result};

use crate::bench::bound::Bound;
use crate::bench::line::{Line, MIB, Unit};
use crate::bench::run::Bench;
use crate::command::{self, quiet};

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let stripped = tempfile::NamedTempFile::new()?;
    command::run(
        quiet("strip")
            .arg("-o")
            .args([stripped.path(), &bench.candidates.outpost]),
    )
    .context("stripping the binary (Debian's package binutils)")?;
    // By its path: the file may have been replaced rather than written to.
    let size = std::fs::metadata(stripped.path())?.len();
    Ok(vec![Line {
        name: "size of the stripped binary".to_owned(),
        unit: Unit::Bytes,
        bare: None,
        outpost: size as f64,
        peer: None,
        bounds: vec![Bound::AtMost(20.0 * MIB)],
    }])
}
