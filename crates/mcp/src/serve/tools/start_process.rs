//! A process that goes on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CommandLine, Glimpse, ranged, sized, timed};
use crate::serve::{Call, Effect, Mishap, Tool, Workbench};

/// The size of a terminal that nobody gave one.
const ROWS: u64 = 24;
const COLS: u64 = 80;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartProcess {
    /// A command line for the shell. Give this or argv.
    command: Option<String>,
    /// A program and its arguments, started without a shell.
    argv: Option<Vec<String>>,
    /// The directory to run it in, absolute or relative to the default one.
    cwd: Option<String>,
    /// Variables to set, on top of the environment there.
    env: Option<BTreeMap<String, String>>,
    /// Run it on a terminal, for programs that behave differently without one. Their output has
    /// escape sequences then, and what is written to them is echoed.
    tty: Option<bool>,
    /// Lines of the terminal.
    #[schemars(range(min = 1, max = 65535), extend("default" = 24))]
    rows: Option<u64>,
    /// Characters in a line of the terminal.
    #[schemars(range(min = 1, max = 65535), extend("default" = 80))]
    cols: Option<u64>,
    /// How long to wait for its first output or its end, in milliseconds.
    #[schemars(range(min = 0, max = 600000), extend("default" = 1000))]
    wait_ms: Option<u64>,
    /// How much output the answer has at most, in bytes.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
}

impl Tool for StartProcess {
    const NAME: &'static str = "start_process";
    const TITLE: &'static str = "Start a process";
    const DESCRIPTION: &'static str = "Starts a command that goes on while you do other things, \
        and gives its process_id with what it says first. Follow it with read_output, talk to it \
        with write_input, end it with stop_process; whatever still runs is ended with this \
        session. For a command that ends by itself, run_command is simpler.";
    const EFFECT: Effect = Effect::Anything;

    type Answer = Glimpse;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Glimpse, Mishap> {
        let bounds = bench.bounds();
        let wait = timed(
            "wait_ms",
            self.wait_ms,
            bounds.first_words,
            (0, bounds.wait_max),
        )?;
        let most = sized(
            "max_output_bytes",
            self.max_output_bytes,
            bounds.output,
            bounds.output_max,
        )?;
        let side = |name, given, otherwise| {
            let side = ranged(name, given, otherwise, (1, u64::from(u16::MAX)))?;
            Ok::<_, Mishap>(u16::try_from(side).unwrap_or(u16::MAX))
        };
        let rows = side("rows", self.rows, ROWS)?;
        let cols = side("cols", self.cols, COLS)?;
        let tty = self.tty.unwrap_or(false).then_some((rows, cols));
        let line = CommandLine::of(self.command, self.argv, self.cwd, self.env)?;
        let job = bench.start(line, tty, true).await?;
        let first = job
            .follow
            .until(|known| known.transcript.end() > 0 || known.state.is_over());
        let work = tokio::time::timeout(wait, first);
        let waited = call.wait(wait, || "starting".to_owned(), work).await;
        if let Err(mishap) = waited {
            // Nobody knows its id.
            if matches!(mishap, Mishap::Cancelled) {
                job.end(bounds.grace, bounds).await?;
            }
            bench.roster.forget(&job);
            return Err(mishap);
        }
        Ok(Glimpse::of(&job, None, 0, most))
    }
}
