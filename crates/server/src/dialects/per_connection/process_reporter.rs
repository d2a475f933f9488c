//! Reports the output and the end of a process that belongs to a connection.

use outpost_engine::{Event, Exit, OutputEnd, Process, Session, Stream};
use outpost_protocol::{
    COMMAND_EXITED, CommandResult, NoMemory, OutputDeltaEncoder, PROCESS_EXITED, SpawnExited,
    V0Exited,
};
use outpost_rpc::MemoryCharge;

use super::{
    ConnectionSession,
    stream_cap::{AllowedPrefix, StreamCap},
};
use crate::{
    connection::Reply,
    dialects::{feed::EventEncoder, notifier::Notifier},
};

/// Bytes of the final message that one stream cannot take from the other.
const RESERVED_PER_STREAM_BYTES: u64 = 1024 * 1024;
/// Copies of the output of a command in memory: its text, the encoded response, and its frames.
const COPIES: usize = 3;

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
    exit: Exit,
}

impl ProcessReporter {
    pub(super) fn new(
        session: &ConnectionSession,
        process: &Process,
        output: Output,
        exit_message: ExitMessage,
    ) -> Self {
        ProcessReporter {
            process: process.clone(),
            session: session.inner.clone(),
            frame: match exit_message {
                ExitMessage::Spawn => OutputDeltaEncoder::spawn(process.id()),
                ExitMessage::Command(_) => OutputDeltaEncoder::command(process.id()),
                ExitMessage::V0 => OutputDeltaEncoder::v0(process.id()),
            },
            exit_message: Some(exit_message),
            stdout: StreamCap::new(output.streamed, output.cap),
            stderr: StreamCap::new(output.streamed, output.cap),
            buffered_bytes: session.connection.server.settings.buffered_output_bytes,
            memory: session.connection.memory.empty_charge(),
            exit: Exit::default(),
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
        let mut space = self.buffered_bytes.saturating_sub(taken);
        let cap = self.stream(stream).1;
        let wanted = cap.buffered_len(bytes.len());
        if wanted > 0 && !self.memory.try_grow(wanted) {
            // No memory for more is handled like a full message.
            space = 0;
        }
        self.stream(stream).1.consume(bytes, space)
    }

    fn encode_exit(&mut self, notifier: &mut Notifier<'_>, end: OutputEnd) {
        // The client may reuse the name as soon as it reads the exit message.
        self.session.forget(&self.process);
        if self.stdout.truncated || self.stderr.truncated {
            tracing::warn!(
                process = self.process.id(),
                limit_bytes = self.buffered_bytes,
                "buffered output truncated to the largest response or the free memory"
            );
        }
        let (id, exit_code) = (self.process.id().to_owned(), self.exit.code);
        let encoded = self.stdout.encoded_bytes + self.stderr.encoded_bytes;
        let has_space = NoMemory::unless_space_for(encoded as usize * COPIES).is_ok();
        if !has_space {
            self.stdout.discard();
            self.stderr.discard();
        }
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
                    output_drain_timed_out: end == OutputEnd::GivenUp,
                    ended_by: self.exit.ended_by,
                    usage: self.exit.usage,
                };
                notifier.notify(PROCESS_EXITED, &exited);
            }
            // Appended after the output, not sent through the outbox, whose messages
            // overtake it.
            Some(ExitMessage::Command(reply)) => {
                let result = CommandResult {
                    exit_code,
                    stdout,
                    stderr,
                    stdout_cap_reached: self.stdout.is_incomplete(),
                    stderr_cap_reached: self.stderr.is_incomplete(),
                };
                notifier.response(&reply.into_message(&Ok(result)));
            }
            Some(ExitMessage::V0) => {
                let exited = V0Exited {
                    process_id: id,
                    exit_code,
                };
                notifier.notify(COMMAND_EXITED, &exited);
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
                self.exit = *exit;
                true
            }
            Event::Closed { .. } => false,
        }
    }

    fn consumes_inline(&self) -> bool {
        self.stdout.streams_no_more() || self.stderr.streams_no_more()
    }

    fn encode(&mut self, notifier: &mut Notifier<'_>, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let (stream, cap) = self.stream(chunk.stream);
                if let Some(AllowedPrefix { len, last }) = cap.take(chunk.bytes.len()) {
                    let bytes = self.frame.encoded_len(stream, len, last);
                    notifier.encode(self.frame.method(), bytes, |out| {
                        self.frame.encode(out, stream, &chunk.bytes[..len], last);
                    });
                }
            }
            Event::Closed { end, .. } => self.encode_exit(notifier, *end),
            Event::Exited { .. } => {}
        }
    }
}
