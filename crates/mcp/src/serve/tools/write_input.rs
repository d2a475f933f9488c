//! What a process reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    /// Which process.
    process_id: String,
    /// What to write, exactly: a line needs its "\n", and on a terminal control characters are
    /// keys ("\u0003" is Ctrl-C, "\u001b[A" the key up).
    text: Option<String>,
    /// End its input after that, as Ctrl-D does.
    end_input: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    process_id: String,
    /// How many bytes were accepted.
    written_bytes: u64,
    /// Where its output was before: what read_output gives behind this cursor came after the
    /// input.
    cursor: u64,
    /// Whether its input has been ended.
    input_ended: bool,
}

impl Tool for WriteInput {
    const NAME: &'static str = "write_input";
    const TITLE: &'static str = "Write to a process";
    const DESCRIPTION: &'static str = "Writes to the stdin or the terminal of a process that \
        start_process has started, and can end its input. The answer has the cursor to give to \
        read_output, with wait_ms, to see what the process says to it.";
    const EFFECT: Effect = Effect::Anything;

    type Answer = Written;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Written, Mishap> {
        let job = bench.roster.find(&self.process_id)?;
        let state = job.follow.state();
        if !state.is_running() {
            return Err(Mishap::HasEnded {
                id: job.id.clone(),
                code: state.exit_code(),
            });
        }
        let cursor = job.follow.known().transcript.end();
        let text = self.text.unwrap_or_default();
        let written_bytes = text.len() as u64;
        let end = self.end_input.unwrap_or(false);
        let work = async {
            job.process.write(text).await?;
            if end {
                job.process.close_stdin().await?;
            }
            Ok::<_, outpost_client::Error>(())
        };
        let say = || "waiting for the process to read its input".to_owned();
        let most = bench.bounds().wait_max;
        let written = call.wait(most, say, tokio::time::timeout(most, work));
        match written.await? {
            Ok(written) => written?,
            Err(_) => {
                return Err(Mishap::NotRead {
                    id: job.id.clone(),
                    within: most,
                });
            }
        }
        Ok(Written {
            process_id: job.id.clone(),
            written_bytes,
            cursor,
            input_ended: end,
        })
    }
}

impl Answer for Written {
    fn words(&self) -> String {
        let ended = match self.input_ended {
            true => ", and ended its input",
            false => "",
        };
        format!(
            "wrote {} to process {}{ended}; what it says to that is behind cursor {}",
            words::bytes(self.written_bytes),
            self.process_id,
            self.cursor,
        )
    }
}
