//! The end of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timed;
use crate::serve::{Answer, Call, Effect, Mishap, State, Tool, Workbench, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopProcess {
    /// Which process.
    process_id: String,
    /// How long it has to end by itself after it was asked to, in milliseconds;
    /// 0 to kill it at once.
    #[schemars(range(min = 0, max = 60000), extend("default" = 2000))]
    grace_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Stopped {
    process_id: String,
    /// Whether it was running until now.
    was_running: bool,
    /// Its exit code: 128 + N if signal N ended it.
    exit_code: Option<i32>,
    /// How long it ran.
    duration_ms: u64,
    /// The end of its output: what read_output gives before it is still there.
    cursor: u64,
    #[serde(skip)]
    state: String,
}

impl Tool for StopProcess {
    const NAME: &'static str = "stop_process";
    const TITLE: &'static str = "Stop a process";
    const DESCRIPTION: &'static str = "Ends a process with everything it has started: asks first, \
        kills when the grace is over, and waits for the end. Of a process that has exited it ends \
        what that has left running. Its output stays readable.";
    const EFFECT: Effect = Effect::Replaces;

    type Answer = Stopped;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Stopped, Mishap> {
        let bounds = bench.bounds();
        let grace = timed(
            "grace_ms",
            self.grace_ms,
            bounds.grace,
            (0, bounds.grace_max),
        )?;
        let job = bench.roster.find(&self.process_id)?;
        let within = grace + bounds.last_words;
        let say = || "waiting for its end".to_owned();
        let was_running = call.wait(within, say, job.end(grace, bounds)).await??;
        let ran = job.follow.ran();
        let known = job.follow.known();
        if known.state == State::Running {
            return Err(Mishap::DoesNotEnd {
                id: job.id.clone(),
                within,
            });
        }
        Ok(Stopped {
            process_id: job.id.clone(),
            was_running,
            exit_code: known.state.exit_code(),
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            cursor: known.transcript.end(),
            state: words::state(&known.state, ran),
        })
    }
}

impl Answer for Stopped {
    fn words(&self) -> String {
        let already = match self.was_running {
            true => "",
            false => " had ended before",
        };
        format!("process {}{already}: {}", self.process_id, self.state)
    }
}
