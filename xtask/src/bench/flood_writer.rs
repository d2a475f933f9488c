//! A program that floods its stdout.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;

use anyhow::{Context, Result};
use rustix::io::Errno;

use super::bare_programs;
use super::pattern::Pattern;

/// The size of every flooded pipe. It is the same on all sides, because a larger pipe makes any
/// reader faster.
const PIPE: usize = 256 * 1024;

/// Builds the command line that writes `bytes` bytes.
pub(super) fn command(pattern: Pattern, bytes: usize) -> Result<Vec<String>> {
    bare_programs::command(&["write-flood", pattern.name(), &bytes.to_string()])
}

pub(super) fn run(pattern: Pattern, bytes: usize) -> Result<()> {
    // Bypass Rust's stdout, which is line-buffered.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Fails on a PTY, which has no such size.
    let _ = rustix::pipe::fcntl_setpipe_size(&out, PIPE);
    let block = pattern.block();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len());
        match out.write_all(&block[..now]) {
            Ok(()) => left -= now,
            Err(error) if reader_has_gone(&error) => break,
            Err(error) => return Err(error).context("writing the flood"),
        }
    }
    Ok(())
}

/// Returns true if the reader has closed its end.
fn reader_has_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(error) == Some(Errno::IO)
}
