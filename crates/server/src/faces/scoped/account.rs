//! What a client is told of a process that belongs to its connection.

use outpost_engine::{End, Event, Process, Session, Stream};
use outpost_protocol::{DeltaFrame, StreamName};
use outpost_rpc::Frames;

use super::{
    Output,
    share::{Portion, Share},
};
use crate::{connection::Scope, faces::feed::Teller};

/// How much of an answer one stream leaves to the other.
const LAST_WORDS_BYTES: u64 = 1024 * 1024;

/// How a face says that it is over.
pub(crate) trait Words: Send + 'static {
    /// Said once.
    fn ended(&mut self, frames: &mut Frames, process: &Process, ended: Ended);
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    /// What was not told before.
    pub(crate) stdout: String,
    pub(crate) stdout_cap_reached: bool,
    pub(crate) stderr: String,
    pub(crate) stderr_cap_reached: bool,
    pub(crate) drain_timed_out: bool,
}

/// Counts what the client gets of a process, and tells it in the words of a
/// face.
pub(crate) struct Account<W> {
    process: Process,
    session: Session,
    /// Writes its output.
    frame: DeltaFrame,
    words: W,
    stdout: Share,
    stderr: Share,
    /// How much both may take in an answer.
    kept_bytes: u64,
    exit_code: i32,
}

impl<W: Words> Account<W> {
    pub(crate) fn new(
        scope: &Scope,
        process: &Process,
        output: Output,
        frame: DeltaFrame,
        words: W,
    ) -> Self {
        let share = || match output {
            Output::Streamed { cap } => Share::streamed(cap),
            Output::Kept { cap } => Share::kept(cap),
        };
        Account {
            process: process.clone(),
            session: scope.session().clone(),
            frame,
            words,
            stdout: share(),
            stderr: share(),
            kept_bytes: scope.server().settings().kept_output_bytes,
            exit_code: 0,
        }
    }

    fn share(&mut self, stream: Stream) -> (StreamName, &mut Share) {
        match stream {
            Stream::Stdout | Stream::Pty => (StreamName::Stdout, &mut self.stdout),
            Stream::Stderr => (StreamName::Stderr, &mut self.stderr),
        }
    }

    /// Takes what nobody is told of now. No stream can take the other one's
    /// room in the answer, as far as that is needed for some last words.
    fn absorb_output(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        let others = match stream {
            Stream::Stdout | Stream::Pty => &self.stderr,
            Stream::Stderr => &self.stdout,
        };
        let reserved = LAST_WORDS_BYTES.min(self.kept_bytes / 2);
        let room = self.kept_bytes - others.written().max(reserved).min(self.kept_bytes);
        self.share(stream).1.absorb(bytes, room)
    }

    fn end(&mut self, frames: &mut Frames, end: End) {
        // Who hears that it is over may use its name again.
        self.session.forget(&self.process);
        if self.stdout.is_cut() || self.stderr.is_cut() {
            let bytes = self.kept_bytes;
            tracing::warn!(bytes, "output beyond the largest answer was dropped");
        }
        let ended = Ended {
            exit_code: self.exit_code,
            stdout: self.stdout.take_text(),
            stdout_cap_reached: self.stdout.is_reached(),
            stderr: self.stderr.take_text(),
            stderr_cap_reached: self.stderr.is_reached(),
            drain_timed_out: end == End::GivenUp,
        };
        self.words.ended(frames, &self.process, ended);
    }
}

impl<W: Words> Teller for Account<W> {
    fn absorb(&mut self, event: &Event) -> bool {
        match event {
            Event::Output(chunk) => self.absorb_output(chunk.stream, &chunk.bytes),
            Event::Exited { exit, .. } => {
                self.exit_code = exit.code;
                true
            }
            Event::Closed { .. } => false,
        }
    }

    fn absorbs(&self) -> bool {
        self.stdout.is_silent() || self.stderr.is_silent()
    }

    fn tell(&mut self, frames: &mut Frames, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let (stream, share) = self.share(chunk.stream);
                if let Some(Portion { len, last }) = share.take(chunk.bytes.len()) {
                    let out = frames.begin(self.frame.encoded_len(stream, len, last));
                    self.frame.encode(out, stream, &chunk.bytes[..len], last);
                    frames.finish();
                }
            }
            Event::Closed { end, .. } => self.end(frames, *end),
            Event::Exited { .. } => {}
        }
    }
}
