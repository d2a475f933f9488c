//! Reports the output and the end of a process that belongs to a connection.

use outpost_engine::{End, Event, Process, Session, Stream};
use outpost_protocol::OutputDeltaEncoder;
use outpost_rpc::FrameBuffer;

use super::{
    Output,
    stream_cap::{AllowedPrefix, StreamCap},
};
use crate::{connection::Scope, dialects::feed::EventEncoder};

/// Bytes of the final message that one stream cannot take from the other.
const RESERVED_PER_STREAM_BYTES: u64 = 1024 * 1024;

/// Encodes the message with which a dialect reports the end of a process.
pub(crate) trait ExitMessage: Send + 'static {
    /// Appends the message. Called once per process.
    fn encode(&mut self, frames: &mut FrameBuffer, process: &Process, report: ExitWithOutput);
}

/// The end of a process, with the output that was not streamed.
#[derive(Debug)]
pub(crate) struct ExitWithOutput {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stdout_cap_reached: bool,
    pub(crate) stderr: String,
    pub(crate) stderr_cap_reached: bool,
    pub(crate) drain_timed_out: bool,
}

/// Applies the output caps to a process's events and encodes the rest.
pub(crate) struct ProcessReporter<M> {
    process: Process,
    session: Session,
    /// Encodes streamed output.
    frame: OutputDeltaEncoder,
    exit_message: M,
    stdout: StreamCap,
    stderr: StreamCap,
    /// Encoded size that buffered output of both streams may have.
    buffered_bytes: u64,
    exit_code: i32,
}

impl<M: ExitMessage> ProcessReporter<M> {
    pub(crate) fn new(
        scope: &Scope,
        process: &Process,
        output: Output,
        frame: OutputDeltaEncoder,
        exit_message: M,
    ) -> Self {
        let cap = || match output {
            Output::Streamed { cap } => StreamCap::streamed(cap),
            Output::Buffered { cap } => StreamCap::buffered(cap),
        };
        ProcessReporter {
            process: process.clone(),
            session: scope.session().clone(),
            frame,
            exit_message,
            stdout: cap(),
            stderr: cap(),
            buffered_bytes: scope.server().settings().buffered_output_bytes,
            exit_code: 0,
        }
    }

    fn stream(&mut self, stream: Stream) -> (Stream, &mut StreamCap) {
        match stream {
            Stream::Stdout | Stream::Pty => (Stream::Stdout, &mut self.stdout),
            Stream::Stderr => (Stream::Stderr, &mut self.stderr),
        }
    }

    /// Consumes output that is not streamed. Each stream keeps a reserved part of the
    /// final message, so that one cannot crowd out the other.
    fn consume_output(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        let other = match stream {
            Stream::Stdout | Stream::Pty => &self.stderr,
            Stream::Stderr => &self.stdout,
        };
        let reserved = RESERVED_PER_STREAM_BYTES.min(self.buffered_bytes / 2);
        let taken = other.encoded_bytes().max(reserved);
        let room = self.buffered_bytes.saturating_sub(taken);
        self.stream(stream).1.consume(bytes, room)
    }

    fn encode_exit(&mut self, frames: &mut FrameBuffer, end: End) {
        // The client may reuse the name as soon as it reads the exit message.
        self.session.forget(&self.process);
        if self.stdout.is_truncated() || self.stderr.is_truncated() {
            tracing::warn!(
                process = self.process.id(),
                limit_bytes = self.buffered_bytes,
                "buffered output truncated to the largest response"
            );
        }
        let report = ExitWithOutput {
            exit_code: self.exit_code,
            stdout: self.stdout.take_text(),
            stdout_cap_reached: self.stdout.is_reached(),
            stderr: self.stderr.take_text(),
            stderr_cap_reached: self.stderr.is_reached(),
            drain_timed_out: end == End::GivenUp,
        };
        self.exit_message.encode(frames, &self.process, report);
    }
}

impl<M: ExitMessage> EventEncoder for ProcessReporter<M> {
    fn consume(&mut self, event: &Event) -> bool {
        match event {
            Event::Output(chunk) => self.consume_output(chunk.stream, &chunk.bytes),
            Event::Exited { exit, .. } => {
                self.exit_code = exit.code;
                true
            }
            Event::Closed { .. } => false,
        }
    }

    fn consumes_inline(&self) -> bool {
        self.stdout.streams_no_more() || self.stderr.streams_no_more()
    }

    fn encode(&mut self, frames: &mut FrameBuffer, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let (stream, cap) = self.stream(chunk.stream);
                if let Some(AllowedPrefix { len, last }) = cap.take(chunk.bytes.len()) {
                    let out = frames.begin(self.frame.encoded_len(stream, len, last));
                    self.frame.encode(out, stream, &chunk.bytes[..len], last);
                    frames.finish();
                }
            }
            Event::Closed { end, .. } => self.encode_exit(frames, *end),
            Event::Exited { .. } => {}
        }
    }
}
