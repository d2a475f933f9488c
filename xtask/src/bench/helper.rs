//! The bare side's programs, each a process of its own as a server would be: what is measured
//! without a server must not be cheaper only because it saves changing from one process to another.

use std::env;

use anyhow::{Context, Result};

use super::pattern::Pattern;
use super::{pour, relay};

/// The name of the subcommand that people don't see.
const NAME: &str = "bench-helper";

#[derive(clap::Args)]
pub(crate) struct Helper {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Write so many bytes to stdout, as fast as it takes them
    Pour { pattern: Pattern, bytes: usize },
    /// Run a command for each connection, between its socket and the command's stdin and stdout
    Relay {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<String>,
    },
}

impl Helper {
    pub(crate) fn run(self) -> Result<()> {
        match self.part {
            Part::Pour { pattern, bytes } => pour::run(pattern, bytes),
            Part::Relay { argv } => relay::run(argv),
        }
    }
}

/// The command line of a part.
pub(super) fn command(words: &[&str]) -> Result<Vec<String>> {
    let us = env::current_exe().context("finding this program")?;
    let us = us.into_os_string().into_string();
    let us = us.ok().context("this program's path isn't UTF-8")?;
    let words = words.iter().map(|word| (*word).to_owned());
    Ok([us, NAME.to_owned()].into_iter().chain(words).collect())
}
