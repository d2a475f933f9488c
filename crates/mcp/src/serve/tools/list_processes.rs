//! The processes there are.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::{Answer, Call, Effect, Job, Mishap, Tool, Workbench, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListProcesses {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    /// Oldest first.
    processes: Vec<Listed>,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    process_id: String,
    /// What it runs, shortened.
    command: String,
    running: bool,
    exit_code: Option<i32>,
    /// Whether it has a terminal.
    tty: bool,
    /// How long it has run, or did.
    duration_ms: u64,
    /// How much it has written; as a cursor this is the end of its output.
    output_bytes: u64,
    #[serde(skip)]
    state: String,
}

impl Tool for ListProcesses {
    const NAME: &'static str = "list_processes";
    const TITLE: &'static str = "List processes";
    const DESCRIPTION: &'static str = "Lists the processes that were started in this session: \
        those that run, and those that have ended and whose output can still be read.";
    const EFFECT: Effect = Effect::Looks;

    type Answer = Listing;

    async fn perform(self, bench: &Workbench, _call: &Call) -> Result<Listing, Mishap> {
        let jobs = bench.roster.jobs();
        Ok(Listing {
            processes: jobs.iter().map(|job| Listed::of(job)).collect(),
        })
    }
}

impl Listed {
    fn of(job: &Job) -> Self {
        let ran = job.follow.ran();
        let known = job.follow.known();
        Listed {
            process_id: job.id.clone(),
            command: job.command.clone(),
            running: known.state.is_running(),
            exit_code: known.state.exit_code(),
            tty: job.tty,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            output_bytes: known.transcript.end(),
            state: words::state(&known.state, ran),
        }
    }
}

impl Answer for Listing {
    fn words(&self) -> String {
        if self.processes.is_empty() {
            return "there are no processes".to_owned();
        }
        let mut said = String::new();
        for listed in &self.processes {
            let _ = writeln!(
                said,
                "{}: {}, {} of output: {}",
                listed.process_id,
                listed.state,
                words::bytes(listed.output_bytes),
                listed.command,
            );
        }
        said
    }
}
