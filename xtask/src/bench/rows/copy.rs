//! A large file to a server and back with `outpost cp`, compared with dd.

use std::fs::{self, File};
use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::bench::bound::Bound;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::run::Bench;
use crate::bench::server::Server;
use crate::bench::stats::{median, rate};

/// The most bytes written and compared at once.
const PIECE: usize = 1 << 20;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let copies = Copies::new(bench)?;
    let (mut bare, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms the page cache and does not count.
    for round in 0..=bench.rounds {
        bench.progress.step(&format!("{round}/{}", bench.rounds));
        let there = copies.on_server(&copies.copy);
        let here = copies.on_server(&copies.original);
        let rates = [
            copies.timed(&mut copies.dd())?,
            copies.timed(&mut copies.cp(&copies.original, &there))?,
            copies.timed(&mut copies.cp(&here, &copies.copy))?,
        ];
        if round > 0 {
            bare.push(rates[0]);
            up.push(rates[1]);
            down.push(rates[2]);
        }
    }
    let bare = median(&bare);
    let line = |name: &str, rates: &[f64]| Measurement {
        name: name.to_owned(),
        unit: Unit::BytesPerSecond,
        bare: Some(bare),
        outpost: median(rates),
        peer: None,
        bounds: vec![Bound::RatioAtLeast(0.2)],
    };
    Ok(vec![
        line("copy to a server", &up),
        line("copy from a server", &down),
    ])
}

/// A file with its copies.
struct Copies {
    binary: PathBuf,
    server: Server,
    bytes: usize,
    original: PathBuf,
    copy: PathBuf,
    /// Removed on drop.
    _folder: TempDir,
}

impl Copies {
    fn new(bench: &Bench) -> Result<Self> {
        let bytes = bench.amount(1 << 30, 1 << 27);
        let folder = tempfile::tempdir()?;
        let original = folder.path().join("original");
        write(&original, bytes).context("writing the file to copy")?;
        Ok(Self {
            binary: bench.candidates.outpost.clone(),
            server: bench.candidates.outpost().start()?,
            bytes,
            copy: folder.path().join("copy"),
            original,
            _folder: folder,
        })
    }

    /// The remote path of a file.
    fn on_server(&self, path: &Path) -> PathBuf {
        format!("{}:{}", self.server.url(), path.display()).into()
    }

    fn cp(&self, from: &Path, to: &Path) -> Command {
        let mut cp = Command::new(&self.binary);
        cp.args(["cp", "--quiet"]).args([from, to]);
        cp
    }

    fn dd(&self) -> Command {
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", self.original.display()))
            .arg(format!("of={}", self.copy.display()))
            .arg("bs=1M")
            .stderr(Stdio::null());
        dd
    }

    /// Runs a copy, measures it and compares the result.
    fn timed(&self, program: &mut Command) -> Result<f64> {
        let _ = fs::remove_file(&self.copy);
        let begun = Instant::now();
        let status = program.stdin(Stdio::null()).status();
        let time = begun.elapsed();
        let status = status.context("starting the copy")?;
        ensure!(status.success(), "the copy failed: {status}");
        ensure!(
            same(&self.original, &self.copy)?,
            "the copy differs from the original"
        );
        Ok(rate(self.bytes, time))
    }
}

/// Writes a file of pseudo-random bytes.
fn write(path: &Path, bytes: usize) -> Result<()> {
    let mut file = File::create(path)?;
    let mut state = 1_u64;
    let mut piece = vec![0; PIECE];
    for _ in 0..bytes / PIECE {
        for word in piece.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&piece)?;
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> Result<bool> {
    let mut files = [one, other].map(|path| File::open(path).map(BufReader::new));
    let [Ok(one), Ok(other)] = &mut files else {
        return Ok(false);
    };
    if one.get_ref().metadata()?.len() != other.get_ref().metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..read])?;
        if left[..read] != right[..read] {
            return Ok(false);
        }
    }
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
        assert!(same(&one, &two).unwrap());
        let mut bytes = fs::read(&two).unwrap();
        bytes[PIECE + 5] ^= 1;
        fs::write(&two, &bytes).unwrap();
        assert!(!same(&one, &two).unwrap());
        fs::write(&two, &bytes[1..]).unwrap();
        assert!(!same(&one, &two).unwrap());
    }
}
