//! A command, run to its end.

use std::{collections::BTreeMap, convert::Infallible, fmt::Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{CommandLine, sized, timed};
use crate::serve::{
    Answer, Call, Digest, Effect, Job, Mishap, State, Stream, Tool, Workbench, words,
};

/// The exit code of what was ended because its time was over, as everywhere.
const TIMED_OUT: i32 = 124;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCommand {
    /// A command line for the shell, with pipes, redirections, several lines: whatever it
    /// understands. Give this or argv.
    command: Option<String>,
    /// A program and its arguments, started without a shell, so that nothing needs quoting.
    argv: Option<Vec<String>>,
    /// The directory to run it in, absolute or relative to the default one.
    cwd: Option<String>,
    /// Variables to set, on top of the environment there.
    env: Option<BTreeMap<String, String>>,
    /// What it reads from stdin, which is empty otherwise.
    stdin: Option<String>,
    /// How long it may take, in milliseconds. Then it is ended with
    /// everything it has started, and the answer has what it wrote until then.
    #[schemars(range(min = 1, max = 86400000), extend("default" = 120000))]
    timeout_ms: Option<u64>,
    /// How much of stdout and of stderr the answer has at most, in bytes each. The
    /// beginning and the end are kept.
    #[schemars(range(min = 100, max = 200000), extend("default" = 20000))]
    max_output_bytes: Option<u64>,
    /// Give stderr among stdout, in the order of arrival, instead of beside it.
    merge_stderr: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Outcome {
    /// Its exit code: 128 + N if signal N ended it, 124 if its time was over. Anything but 0 is
    /// usually a failure. Null if it isn't known.
    exit_code: Option<i32>,
    /// Whether it was ended because it took too long.
    timed_out: bool,
    /// How long it ran.
    duration_ms: u64,
    /// What it wrote to stdout, or to both if they were merged.
    stdout: String,
    /// What it wrote to stderr.
    stderr: String,
    /// Whether something was left out of the output; a line in it says where, and how to get it.
    truncated: bool,
    /// Something that it started still runs and holds its output. stop_process ends it.
    left_running: bool,
    /// For read_output or stop_process, where there is something left to read or to end.
    process_id: Option<String>,
    /// Why its end isn't known, if that is so.
    lost: Option<String>,
    #[serde(skip)]
    state: String,
}

impl Tool for RunCommand {
    const NAME: &'static str = "run_command";
    const TITLE: &'static str = "Run a command";
    const DESCRIPTION: &'static str = "Runs a command, waits for its end, and gives its exit code \
        with what it wrote to stdout and stderr. A command that fails is no error of this tool: \
        look at exit_code. Use it for everything that ends by itself: builds, tests, searches, \
        git. Each call has a fresh shell, so give cwd instead of a `cd` before. For servers, \
        watchers, and programs to talk to, use start_process.";
    const EFFECT: Effect = Effect::Anything;

    type Answer = Outcome;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Outcome, Mishap> {
        let bounds = bench.bounds();
        let time = timed(
            "timeout_ms",
            self.timeout_ms,
            bounds.run,
            (1, bounds.run_max),
        )?;
        let most = sized(
            "max_output_bytes",
            self.max_output_bytes,
            bounds.output,
            bounds.output_max,
        )?;
        let line = CommandLine::of(self.command, self.argv, self.cwd, self.env)?;
        let job = bench.start(line, None, self.stdin.is_some()).await?;
        let ending = async {
            let exited = job.follow.until(|known| !known.state.is_running());
            let timed_out = timeout(time, exited).await.is_err();
            if !timed_out {
                // What it has left behind has no part in its time.
                job.follow.settled(bounds.drain).await;
            }
            timed_out
        };
        let work = async {
            tokio::select! {
                timed_out = ending => timed_out,
                never = feed(&job, self.stdin) => match never {},
            }
        };
        let timed_out = match call.wait(time, || so_far(&job), work).await {
            Ok(timed_out) => timed_out,
            Err(mishap) => {
                if matches!(mishap, Mishap::Cancelled) {
                    // Where it can't be ended its place is lost, and nobody asks.
                    let _ = job.end(bounds.grace, bounds).await;
                }
                bench.roster.forget(&job);
                return Err(mishap);
            }
        };
        let ended = match timed_out {
            true => job.end(bounds.grace, bounds).await,
            false => Ok(false),
        };
        let merged = self.merge_stderr.unwrap_or(false);
        let mut outcome = Outcome::of(&job, timed_out, most, merged);
        if let Err(error) = ended {
            // What it wrote until then is worth an answer all the same.
            outcome.process_id = Some(job.id.clone());
            outcome.lost.get_or_insert_with(|| error.to_string());
        }
        if outcome.process_id.is_none() {
            bench.roster.forget(&job);
        }
        Ok(outcome)
    }
}

/// Gives it what it is to read. What it doesn't take it doesn't want.
async fn feed(job: &Job, stdin: Option<String>) -> Infallible {
    if let Some(stdin) = stdin
        && job.process.write(stdin).await.is_ok()
    {
        let _ = job.process.close_stdin().await;
    }
    std::future::pending().await
}

fn so_far(job: &Job) -> String {
    let ran = job.follow.ran();
    let known = job.follow.known();
    let written = known.transcript.total(None);
    let last = Digest::of(&known.transcript, None, 400);
    drop(known);
    let mut said = format!(
        "running for {}, {}",
        words::time(ran),
        words::bytes(written)
    );
    let end = match last.cut {
        Some(_) => &last.tail,
        None => &last.head,
    };
    if let Some(line) = words::last_line(end) {
        let _ = write!(said, ": {line}");
    }
    said
}

impl Outcome {
    fn of(job: &Job, timed_out: bool, most: usize, merged: bool) -> Self {
        let ran = job.follow.ran();
        let known = job.follow.known();
        let state = match (known.state.clone(), timed_out) {
            (State::Exited(_), true) => State::Exited(TIMED_OUT),
            (State::Closed(_), true) => State::Closed(TIMED_OUT),
            (state, _) => state,
        };
        let digest = |stream| Digest::of(&known.transcript, stream, most);
        let (out, err) = match merged {
            true => (digest(None), None),
            false => (
                digest(Some(Stream::Stdout)),
                Some(digest(Some(Stream::Stderr))),
            ),
        };
        drop(known);
        let truncated = out.cut.is_some() || err.as_ref().is_some_and(|err| err.cut.is_some());
        let left_running = matches!(state, State::Exited(_));
        let stdout = words::digest(&out, &job.id, (!merged).then_some("stdout"));
        let stderr = err.map(|err| words::digest(&err, &job.id, Some("stderr")));
        Outcome {
            exit_code: state.exit_code(),
            timed_out,
            duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            stdout,
            stderr: stderr.unwrap_or_default(),
            truncated,
            left_running,
            process_id: (truncated || left_running).then(|| job.id.clone()),
            state: words::state(&state, ran),
            lost: match state {
                State::Lost(why) => Some(why),
                _ => None,
            },
        }
    }
}

impl Answer for Outcome {
    fn words(&self) -> String {
        let mut said = self.state.clone();
        if self.timed_out {
            said.push_str(match self.lost {
                None => "; it took too long and was ended",
                Some(_) => "; it took too long, and whether it could be ended isn't known",
            });
        }
        if self.left_running
            && let Some(id) = &self.process_id
        {
            let _ = write!(said, " (stop_process {{\"process_id\": \"{id}\"}} ends it)");
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            said.push_str("; it wrote nothing");
        }
        said.push_str(&words::part("stdout", &self.stdout));
        said.push_str(&words::part("stderr", &self.stderr));
        said
    }
}
