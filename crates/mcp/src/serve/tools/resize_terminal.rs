//! The size of a process's terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResizeTerminal {
    /// Which process.
    process_id: String,
    /// Lines.
    #[schemars(range(min = 1))]
    rows: u16,
    /// Characters in a line.
    #[schemars(range(min = 1))]
    cols: u16,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Resized {
    process_id: String,
    rows: u16,
    cols: u16,
}

impl Tool for ResizeTerminal {
    const NAME: &'static str = "resize_terminal";
    const TITLE: &'static str = "Resize a process's terminal";
    const DESCRIPTION: &'static str = "Gives the terminal of a process another size. Only one \
        that was started with \"tty\": true has one.";
    const EFFECT: Effect = Effect::Sets;

    type Answer = Resized;

    async fn perform(self, bench: &Workbench, _call: &Call) -> Result<Resized, Mishap> {
        let ResizeTerminal {
            process_id,
            rows,
            cols,
        } = self;
        let most = u64::from(u16::MAX);
        for (name, side) in [("rows", rows), ("cols", cols)] {
            super::ranged(name, Some(side.into()), 0, (1, most))?;
        }
        let job = bench.roster.find(&process_id)?;
        if !job.tty {
            return Err(Mishap::NoTerminal { id: process_id });
        }
        let state = job.follow.state();
        if !state.is_running() {
            return Err(Mishap::HasEnded {
                id: process_id,
                code: state.exit_code(),
            });
        }
        job.process.resize(rows, cols).await?;
        Ok(Resized {
            process_id,
            rows,
            cols,
        })
    }
}

impl Answer for Resized {
    fn words(&self) -> String {
        let Resized {
            process_id,
            rows,
            cols,
        } = self;
        format!("the terminal of process {process_id} has {rows} lines of {cols} characters")
    }
}
