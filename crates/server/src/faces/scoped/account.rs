//! What a client is told of a process that belongs to its connection.

use outpost_engine::{End, Event, Process, Session, Stream};
use outpost_protocol::{DeltaFrame, StreamName};
use outpost_rpc::Frames;

use super::{Output, share::Share};
use crate::{connection::Scope, faces::feed::Teller};

/// How a face says it.
pub(crate) trait Words: Send + 'static {
    /// Bytes were written; `last` if nothing more of this stream is told.
    fn delta(&self, frames: &mut Frames, stream: StreamName, bytes: &[u8], last: bool);

    /// It is over. Said once.
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
    words: W,
    stdout: Share,
    stderr: Share,
    exit_code: i32,
}

impl<W: Words> Account<W> {
    pub(crate) fn new(scope: &Scope, process: &Process, output: Output, words: W) -> Self {
        let bound = scope.server().settings().kept_output_bytes;
        let share = || match output {
            Output::Streamed { cap } => Share::streamed(cap),
            Output::Kept { cap } => Share::kept(cap.unwrap_or(bound).min(bound)),
        };
        Account {
            process: process.clone(),
            session: scope.session().clone(),
            words,
            stdout: share(),
            stderr: share(),
            exit_code: 0,
        }
    }

    fn share(&mut self, stream: Stream) -> (StreamName, &mut Share) {
        match stream {
            Stream::Stdout | Stream::Pty => (StreamName::Stdout, &mut self.stdout),
            Stream::Stderr => (StreamName::Stderr, &mut self.stderr),
        }
    }

    fn end(&mut self, frames: &mut Frames, end: End) {
        // Who hears that it is over may use its name again.
        self.session.forget(&self.process);
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
            Event::Output(chunk) => self.share(chunk.stream).1.absorb(&chunk.bytes),
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
                if let Some(portion) = share.take(chunk.bytes.len()) {
                    let bytes = &chunk.bytes[..portion.len];
                    self.words.delta(frames, stream, bytes, portion.last);
                }
            }
            Event::Closed { end, .. } => self.end(frames, *end),
            Event::Exited { .. } => {}
        }
    }
}

/// Appends a notification of output.
pub(crate) fn append_delta(
    frames: &mut Frames,
    frame: &DeltaFrame,
    stream: StreamName,
    bytes: &[u8],
    last: bool,
) {
    let out = frames.begin(frame.encoded_len(stream, bytes.len(), last));
    frame.encode(out, stream, bytes, last);
    frames.finish();
}
