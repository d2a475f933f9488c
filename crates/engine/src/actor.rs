//! The one task of a process: reads its output, feeds its input, ends it.

use std::time::{Duration, Instant};

use outpost_journal::{End, Exit, Stream};
use outpost_process::{ExitWatch, Output, ReadOutcome, Stream as Source, Watched};
use outpost_sandbox::{Hold, Remains};
use tokio::time::{sleep_until, timeout};

use crate::{
    clock,
    process::{DIES_WITHIN, Process},
};

/// The exit code of a process that ran out of its time.
const TIMED_OUT: i32 = 124;

/// What a confined process needed on the host, for those that it has left: what is
/// hidden from them stays so until the last has gone.
pub(crate) struct Vigil {
    hold: Hold,
    /// The last to go.
    first: Watched,
}

impl Vigil {
    pub(crate) async fn keep(self) {
        ended(Some(&self.first)).await;
        drop(self.hold);
    }
}

pub(crate) struct Actor {
    pub(crate) process: Process,
    /// The streams that have not ended.
    pub(crate) outputs: Vec<Output>,
    /// The streams that have. They stay open for as long as the child may
    /// live: a terminal that nobody holds hangs up, on a child perhaps that has
    /// closed its own end and is just about to leave.
    pub(crate) ended: Vec<Output>,
    pub(crate) exit: ExitWatch,
    pub(crate) timeout_at: Option<Instant>,
    /// How long streams that are still open are read on after the exit.
    pub(crate) drain: Option<Duration>,
    pub(crate) read_bytes: usize,
    /// What a confined process needs on the host; none for all others.
    pub(crate) hold: Option<Hold>,
    /// The same once it has ended, if somebody doesn't go.
    pub(crate) vigil: Option<Vigil>,
    /// How long late output of a confined process is waited for.
    pub(crate) late_within: Duration,
}

impl Actor {
    /// Runs until the process is closed and, if it was asked to end, nothing of
    /// its tree is left.
    ///
    /// Nobody waits for the end of those that a confined process has left; what they
    /// need is returned.
    pub(crate) async fn run(mut self) -> Option<Vigil> {
        let mut exited = false;
        let mut timed_out = false;
        let mut give_up_at = None;
        let mut end = End::Whole;
        let mut remains = None;
        while !exited || !self.outputs.is_empty() {
            // Readiness alone never makes a task yield, and a child that is
            // always ready would keep everybody else from hearing anything.
            tokio::task::consume_budget().await;
            let room = self.process.has_room();
            let shared = &self.process.shared;
            let deadline = self.process.ladder().deadline();
            let timeout = self.timeout_at.filter(|_| !timed_out && !exited);
            // Looked at first: no time at all is over before anything can happen,
            // however quick the child is.
            if timeout.is_some_and(|at| at <= clock::now()) {
                timed_out = true;
                self.process.end(Some(Duration::ZERO));
                continue;
            }
            tokio::select! {
                exit = self.exit.wait(), if !exited => {
                    exited = true;
                    give_up_at = self.drain.map(|drain| clock::after(clock::now(), drain));
                    self.drain();
                    let code = if timed_out { TIMED_OUT } else { exit.code() };
                    let confined = self.hold.is_some();
                    if confined {
                        remains = self.clear_up().await;
                    }
                    let sandbox_denied = confined && self.process.looks_denied(code);
                    self.process.append_exit(Exit { code, sandbox_denied });
                    // Most often that was all: then the close goes out with the
                    // exit, and nobody is woken twice.
                    for index in (0..self.outputs.len()).rev() {
                        self.read(index);
                    }
                    if !self.outputs.is_empty() {
                        self.exit.reap();
                    }
                }
                index = readable(&self.outputs), if room && !self.outputs.is_empty() => {
                    self.read(index);
                }
                () = shared.room.notified(), if !room => {}
                () = shared.stdin.work() => shared.stdin.flush(),
                () = shared.ladder_moved.notified() => {}
                () = until(deadline) => {
                    let step = self.process.ladder().tick(clock::now());
                    self.process.climb(step);
                }
                () = until(timeout) => {}
                () = until(give_up_at) => {
                    end = End::GivenUp;
                    self.outputs.clear();
                }
            }
        }
        self.process.shared.stdin.close();
        // Those that it has left may have ended with their streams.
        if let Some(vigil) = self.vigil.take() {
            remains = self.let_go(vigil).await;
        }
        self.process.append_close(end);
        // All that is left is tidying up: who waits for the end hears of it
        // before.
        tokio::task::yield_now().await;
        drop(remains);
        self.ended.clear();
        self.exit.reap();
        self.process.see_the_ladder_through().await;
        self.process.shared.control.settle();
        self.process.actor_is_done();
        // Somebody may have asked between the two.
        self.process.see_the_ladder_through().await;
        self.vigil
    }

    fn read(&mut self, index: usize) {
        let output = &mut self.outputs[index];
        match output.read(self.read_bytes) {
            ReadOutcome::Data(bytes) => {
                let stream = stream_of(output.stream());
                self.process.append_output(stream, bytes);
            }
            ReadOutcome::Empty => {}
            ReadOutcome::End => {
                let ended = self.outputs.swap_remove(index);
                if ended.stream() == Source::Pty {
                    // Nobody has it open any more, so nobody will read from it.
                    self.process.shared.stdin.close();
                }
                self.ended.push(ended);
            }
        }
    }

    /// After the exit of a confined process: what it has left running goes on, and what
    /// that needs on the host stays. If there is nothing, who hears of the exit finds
    /// nothing of it there either.
    async fn clear_up(&mut self) -> Option<Remains> {
        let hold = self.hold.take()?;
        let watched = |first: Option<_>| first.map(Watched::new).transpose();
        match hold.first().and_then(watched) {
            Ok(Some(first)) => {
                if self.hear_the_last(Some(&first)).await {
                    return Some(hold.let_go());
                }
                self.let_go(Vigil { hold, first }).await
            }
            // There is no inside.
            Ok(None) => {
                self.hear_the_last(None).await;
                Some(hold.let_go())
            }
            Err(error) => {
                // Nobody knows when it is safe to let go, so that is when all of it
                // has been seen to its end.
                tracing::warn!(%error, "what a confined process has left can't be watched");
                self.process.end(Some(Duration::ZERO));
                self.hold = Some(hold);
                self.hear_the_last(None).await;
                None
            }
        }
    }

    /// Lets go of what is needed on the host, if nobody is left who needs it.
    async fn let_go(&mut self, vigil: Vigil) -> Option<Remains> {
        let Vigil { hold, first } = &vigil;
        if hold.is_deserted() && timeout(DIES_WITHIN, first.readable()).await.is_ok() {
            return Some(vigil.hold.let_go());
        }
        self.vigil = Some(vigil);
        None
    }

    /// What is written just after the exit is worth a short wait, and so is the end of
    /// who was the first inside. Says whether that one has gone.
    async fn hear_the_last(&mut self, first: Option<&Watched>) -> bool {
        let until = tokio::time::Instant::now() + self.late_within;
        let mut gone = first.is_none();
        while !gone || !self.outputs.is_empty() {
            tokio::select! {
                index = readable(&self.outputs) => self.read(index),
                () = ended(first), if !gone => gone = true,
                () = sleep_until(until) => break,
            }
        }
        gone
    }

    /// Takes what the child had written when it ended, window or not.
    fn drain(&mut self) {
        for output in &mut self.outputs {
            let stream = stream_of(output.stream());
            for bytes in output.drain() {
                self.process.append_output(stream, bytes);
            }
        }
    }
}

/// Waits until one of the outputs can be read, and says which.
async fn readable(outputs: &[Output]) -> usize {
    match outputs {
        [] => std::future::pending().await,
        [only] => {
            let _ = only.readable().await;
            0
        }
        [first, second, ..] => tokio::select! {
            _ = first.readable() => 0,
            _ = second.readable() => 1,
        },
    }
}

/// Waits for the end of a process that is watched.
async fn ended(process: Option<&Watched>) {
    match process {
        // It can only fail with the runtime, and everything ends with that.
        Some(process) => drop(process.readable().await),
        None => std::future::pending().await,
    }
}

pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn stream_of(source: Source) -> Stream {
    match source {
        Source::Stdout => Stream::Stdout,
        Source::Stderr => Stream::Stderr,
        Source::Pty => Stream::Pty,
    }
}
