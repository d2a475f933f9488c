//! A program that writes a lot.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;

use anyhow::{Context, Result};
use rustix::io::Errno;

use super::helper;
use super::pattern::Pattern;

/// The size of every pipe that carries a flood, whoever reads it: more room makes any reader
/// faster, so it is the same for all.
const PIPE: usize = 256 * 1024;

/// The command line that pours so many bytes.
pub(super) fn command(pattern: Pattern, bytes: usize) -> Result<Vec<String>> {
    helper::command(&["pour", pattern.name(), &bytes.to_string()])
}

pub(super) fn run(pattern: Pattern, bytes: usize) -> Result<()> {
    // Not by way of Rust's own stdout, which would cut what it writes into lines.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // A terminal has no such size, and needs none.
    let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE);
    let block = pattern.block();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len());
        match out.write_all(&block[..now]) {
            Ok(()) => left -= now,
            Err(error) if reader_has_gone(&error) => break,
            Err(error) => return Err(error).context("pouring"),
        }
    }
    Ok(())
}

/// How a flood without end ends.
fn reader_has_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(error) == Some(Errno::IO)
}
