//! Reports the output and the end of a process that belongs to a connection.

use outpost_engine::{Event, Process, Session, Stream, StreamEnd};
use outpost_protocol::{
    COMMAND_EXITED, CommandResult, NoMemory, OutputDeltaEncoder, PROCESS_EXITED, SpawnExited,
    V0Exited,
};
use outpost_rpc::{FrameBuffer, MemoryCharge};

use super::{
    Scope,
    stream_cap::{AllowedPrefix, StreamCap},
};
use crate::{
    connection::{Reply, no_memory},
    dialects::feed::{EventEncoder, notify},
};

/// Bytes of the final message that one stream cannot take from the other.
const RESERVED_PER_STREAM_BYTES: u64 = 1024 * 1024;
/// Copies of the output of a command in memory: the encoded response, and its frames.
const COPIES: usize = 2;

/// Transfer of output to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    /// Sent as it arrives; otherwise with the exit, as text.
    pub(super) streamed: bool,
    /// The limit per stream.
    pub(super) cap: Option<u64>,
}

/// The message with which a dialect reports the end of a process.
pub(super) enum ExitMessage {
    /// `process/exited`
    Spawn,
    /// The response to `command/exec`.
    Command(Reply),
    /// `command/exec/exited`
    V0,
}

/// Applies the output caps to a process's events and encodes the rest.
pub(super) struct ProcessReporter {
    process: Process,
    session: Session,
    /// Encodes streamed output.
    frame: OutputDeltaEncoder,
    /// `None` after it was sent.
    exit_message: Option<ExitMessage>,
    stdout: StreamCap,
    stderr: StreamCap,
    /// Encoded size that buffered output of both streams may have.
    buffered_bytes: u64,
    /// Memory of the buffered output, until the final message is written.
    memory: MemoryCharge,
    exit_code: i32,
}

impl ProcessReporter {
    pub(super) fn new(
        scope: &Scope,
        process: &Process,
        output: Output,
        exit_message: ExitMessage,
    ) -> Self {
        ProcessReporter {
            process: process.clone(),
            session: scope.session.clone(),
            frame: match exit_message {
                ExitMessage::Spawn => OutputDeltaEncoder::spawn(process.id()),
                ExitMessage::Command(_) => OutputDeltaEncoder::command(process.id()),
                ExitMessage::V0 => OutputDeltaEncoder::v0(process.id()),
            },
            exit_message: Some(exit_message),
            stdout: StreamCap::new(output.streamed, output.cap),
            stderr: StreamCap::new(output.streamed, output.cap),
            buffered_bytes: scope.connection.server.settings.buffered_output_bytes,
            memory: scope.connection.memory.empty_charge(),
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
        let taken = other.encoded_bytes.max(reserved);
        let mut room = self.buffered_bytes.saturating_sub(taken);
        let cap = self.stream(stream).1;
        let wanted = cap.buffered_len(bytes.len());
        if wanted > 0 && !self.memory.try_grow(wanted) {
            // No memory for more is handled like a full message.
            room = 0;
        }
        self.stream(stream).1.consume(bytes, room)
    }

    fn encode_exit(&mut self, frames: &mut FrameBuffer, end: StreamEnd) {
        // The client may reuse the name as soon as it reads the exit message.
        self.session.forget(&self.process);
        if self.stdout.truncated || self.stderr.truncated {
            tracing::warn!(
                process = self.process.id(),
                limit_bytes = self.buffered_bytes,
                "buffered output truncated to the largest response or the free memory"
            );
        }
        let (id, exit_code) = (self.process.id().to_owned(), self.exit_code);
        let (stdout, stderr) = (self.stdout.take_text(), self.stderr.take_text());
        match self.exit_message.take() {
            Some(ExitMessage::Spawn) => {
                let exited = SpawnExited {
                    process_handle: id,
                    exit_code,
                    stdout,
                    stdout_cap_reached: self.stdout.reached,
                    stderr,
                    stderr_cap_reached: self.stderr.reached,
                    output_drain_timed_out: end == StreamEnd::GivenUp,
                };
                notify(frames, PROCESS_EXITED, &exited);
            }
            // Appended after the output, not sent through the outbox, whose messages
            // overtake it.
            Some(ExitMessage::Command(reply)) => {
                let room = NoMemory::unless_room_for((stdout.len() + stderr.len()) * COPIES);
                let result = room.map_err(|_| no_memory("response"));
                let result = result.map(|()| CommandResult {
                    exit_code,
                    stdout,
                    stderr,
                });
                frames.message(&reply.into_message(&result));
            }
            Some(ExitMessage::V0) => {
                let exited = V0Exited {
                    process_id: id,
                    exit_code,
                };
                notify(frames, COMMAND_EXITED, &exited);
            }
            None => {}
        }
    }
}

impl EventEncoder for ProcessReporter {
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
