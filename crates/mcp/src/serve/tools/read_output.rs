//! What a process says.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Glimpse, sized, timed};
use crate::serve::{Call, Effect, Mishap, Stream, Tool, Workbench, words};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadOutput {
    /// Which process.
    process_id: String,
    /// Where to read on: the cursor of the answer before. From the beginning if not given.
    #[schemars(range(min = 0), extend("default" = 0))]
    cursor: Option<u64>,
    /// How long to wait if there is nothing to read yet, in milliseconds.
    #[schemars(range(min = 0, max = 600000), extend("default" = 0))]
    wait_ms: Option<u64>,
    /// What to wait for: any output behind the cursor, which is the default, or its end.
    wait_for: Option<WaitFor>,
    /// One stream alone, instead of both as they came. The cursor means the same for all of them.
    stream: Option<OneStream>,
    /// How much output the answer has at most, in bytes.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    Output,
    Exit,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OneStream {
    Stdout,
    Stderr,
}

impl Tool for ReadOutput {
    const NAME: &'static str = "read_output";
    const TITLE: &'static str = "Read a process's output";
    const DESCRIPTION: &'static str = "Gives what a process has written behind a cursor, whether \
        it still runs, and its exit code if it doesn't. The answer's cursor is where to read on \
        the next time; nothing is used up by reading, so the same cursor gives the same again. \
        With wait_ms it waits for news instead of being asked again and again.";
    const EFFECT: Effect = Effect::Looks;

    type Answer = Glimpse;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Glimpse, Mishap> {
        let bounds = bench.bounds();
        let none = std::time::Duration::ZERO;
        let wait = timed("wait_ms", self.wait_ms, none, (0, bounds.wait_max))?;
        let most = sized(
            "max_output_bytes",
            self.max_output_bytes,
            bounds.output,
            bounds.output_max,
        )?;
        let job = bench.roster.find(&self.process_id)?;
        let cursor = self.cursor.unwrap_or(0);
        let stream = self.stream.map(|stream| match stream {
            OneStream::Stdout => Stream::Stdout,
            OneStream::Stderr => Stream::Stderr,
        });
        let exit = matches!(self.wait_for, Some(WaitFor::Exit));
        let news = async {
            if exit {
                job.follow.settled(bounds.drain).await;
            } else {
                let anything = |known: &crate::serve::follow::Known| {
                    known.state.is_over()
                        || known.transcript.pieces(stream, cursor).next().is_some()
                };
                job.follow.until(anything).await;
            }
        };
        let say = || {
            let state = job.follow.state();
            words::state(&state, job.follow.ran())
        };
        let waited = tokio::time::timeout(wait, news);
        // What didn't come in time is no failure: the answer says how it stands.
        let _ = call.wait(wait, say, waited).await?;
        Ok(Glimpse::of(&job, stream, cursor, most))
    }
}
