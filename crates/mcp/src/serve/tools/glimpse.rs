//! How a process stands and what it says, the answer of several tools.

use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::{Answer, Job, Page, Stream, words};

/// How a process stands, and what it has written behind a cursor.
#[derive(Serialize, JsonSchema)]
pub(super) struct Glimpse {
    /// For later calls.
    process_id: String,
    /// Whether it has not exited yet.
    running: bool,
    /// Its exit code, once it has exited: 128 + N if signal N ended it.
    exit_code: Option<i32>,
    /// What it wrote behind the cursor, stdout and stderr as they came unless a
    /// stream was chosen.
    output: String,
    /// The cursor for the next read_output.
    cursor: u64,
    /// Whether there is more output right now, for which this answer had no room or before
    /// which something is forgotten.
    more: bool,
    /// How many bytes between the cursor and this output are forgotten, because too much was
    /// written since. None are missing within the output.
    missed_bytes: u64,
    /// Why nothing more can be said of it, if that is so.
    lost: Option<String>,
    /// How long it has run, or did.
    duration_ms: u64,
    #[serde(skip)]
    state: String,
}

impl Glimpse {
    pub(super) fn of(job: &Job, stream: Option<Stream>, cursor: u64, most: usize) -> Self {
        let ran = job.follow.ran();
        let known = job.follow.known();
        let state = known.state.clone();
        let page = Page::of(&known.transcript, stream, cursor, most, state.is_over());
        drop(known);
        Glimpse {
            process_id: job.id.clone(),
            running: state.is_running(),
            exit_code: state.exit_code(),
            output: words::text(&page.bytes),
            cursor: page.next,
            more: page.more,
            missed_bytes: page.missed,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            state: words::state(&state, ran),
            lost: match state {
                crate::serve::State::Lost(why) => Some(why),
                _ => None,
            },
        }
    }
}

impl Answer for Glimpse {
    fn words(&self) -> String {
        let mut said = format!("process {}: {}", self.process_id, self.state);
        if self.missed_bytes > 0 {
            let missed = words::bytes(self.missed_bytes);
            said.push_str(&format!("; {missed} before this output are forgotten"));
        }
        said.push_str(&match (self.more, self.running) {
            (true, _) => format!("; there is more, read on from cursor {}", self.cursor),
            (false, true) => format!("; what comes next is behind cursor {}", self.cursor),
            (false, false) => String::new(),
        });
        said.push_str(&words::part("output", &self.output));
        said
    }
}
