//! A large file to a server and back with `outpost cp`, compared with dd; the size of the binary.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::measurement::{Bound, MIB, Measurement, Unit};
use crate::bench::rounds::{Medians, alternate, rate};
use crate::bench::run::Bench;
use crate::command::{self, quiet, succeeds};

/// The most bytes written at once.
const PIECE: usize = 1 << 20;

/// Measures copies to and from a server.
pub(super) fn copy(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let folder = tempfile::tempdir()?;
    let original = &folder.path().join("original");
    let copied = &folder.path().join("copy");
    write(original, bytes).context("writing the file to copy")?;
    let server = bench.outpost().start()?;
    // Runs a copy, measures it and compares the result.
    let timed = |program: &mut Command| {
        let _ = fs::remove_file(copied);
        let begun = Instant::now();
        let status = program.stdin(Stdio::null()).status();
        let time = begun.elapsed();
        let status = status.context("starting the copy")?;
        ensure!(status.success(), "the copy failed: {status}");
        ensure!(same(original, copied), "the copy differs from the original");
        Ok(rate(bytes, time))
    };
    let dd = || {
        let files = [("if", original), ("of", copied)];
        let files = files.map(|(name, path)| format!("{name}={}", path.display()));
        let mut dd = Command::new("dd");
        // dd prints statistics.
        let rate = timed(dd.args(files).arg("bs=1M").stderr(Stdio::null()))?;
        Ok([rate, rate])
    };
    let on_server = |path: &Path| PathBuf::from(format!("{}:{}", server.url(), path.display()));
    let cp = |from: &Path, to: &Path| {
        let mut cp = Command::new(&bench.binary);
        timed(cp.args(["cp", "--quiet"]).args([from, to]))
    };
    let both_ways = || {
        Ok([
            cp(original, &on_server(copied))?,
            cp(&on_server(original), copied)?,
        ])
    };
    let sides = [
        Some(Box::new(dd) as _),
        Some(Box::new(both_ways) as _),
        None,
    ];
    let medians = alternate(bench, bench.rounds, sides)?;
    let line = |name| (name, Unit::BytesPerSecond, vec![Bound::RatioAtLeast(0.2)]);
    Ok(medians.lines(["copy to a server", "copy from a server"].map(line)))
}

/// Measures the size of the stripped binary.
pub(super) fn size(bench: &Bench) -> Result<Vec<Measurement>> {
    let stripped = tempfile::NamedTempFile::new()?;
    let files = [stripped.path(), &bench.binary];
    command::run(quiet("strip").arg("-o").args(files))
        .context("stripping the binary (Debian package binutils)")?;
    // By path: strip may replace the file.
    let size = fs::metadata(stripped.path())?.len();
    let medians = Medians {
        bare: None,
        outpost: [size as f64],
        peer: None,
    };
    let bounds = vec![Bound::AtMost(24.0 * MIB)];
    Ok(medians.lines([("size of the stripped binary", Unit::Bytes, bounds)]))
}

/// Writes a file of pseudo-random bytes.
fn write(path: &Path, bytes: usize) -> Result<()> {
    let mut file = File::create(path)?;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut piece = vec![0; PIECE];
    for _ in 0..bytes / PIECE {
        rng.fill(&mut piece);
        file.write_all(&piece)?;
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> bool {
    succeeds(quiet("cmp").arg("--silent").args([one, other]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_copy_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        write(&one, 2 * PIECE).unwrap();
        fs::copy(&one, &two).unwrap();
        assert!(same(&one, &two));
        let mut bytes = fs::read(&two).unwrap();
        bytes[PIECE + 5] ^= 1;
        fs::write(&two, &bytes).unwrap();
        assert!(!same(&one, &two));
        fs::write(&two, &bytes[1..]).unwrap();
        assert!(!same(&one, &two));
    }
}
