//! The programs of the bare side. Each is a process of its own, so that the bare side pays for the
//! same context switches as a server.

use std::env;

use anyhow::{Context, Result};

use super::pattern::Pattern;
use super::{flood_writer, relay};

/// The hidden subcommand.
const NAME: &str = "bench-program";

#[derive(clap::Args)]
pub(crate) struct BareProgram {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Write this many bytes to stdout
    WriteFlood { pattern: Pattern, bytes: usize },
    /// Connect each socket to stdin and stdout of a command
    Relay {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<String>,
    },
}

impl BareProgram {
    pub(crate) fn run(self) -> Result<()> {
        match self.part {
            Part::WriteFlood { pattern, bytes } => flood_writer::run(pattern, bytes),
            Part::Relay { argv } => relay::run(argv),
        }
    }
}

/// Builds the command line of a bare program.
pub(super) fn command(words: &[&str]) -> Result<Vec<String>> {
    let us = env::current_exe().context("finding this program")?;
    let us = us.into_os_string().into_string();
    let us = us.ok().context("this program's path isn't UTF-8")?;
    let words = words.iter().map(|word| (*word).to_owned());
    Ok([us, NAME.to_owned()].into_iter().chain(words).collect())
}
