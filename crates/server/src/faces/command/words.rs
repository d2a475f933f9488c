//! `command/exec/outputDelta`, and the answer.

use outpost_engine::Process;
use outpost_protocol::{CommandResult, DeltaFrame, StreamName};
use outpost_rpc::Frames;

use crate::{
    connection::Reply,
    faces::scoped::{Ended, Words, append_delta},
};

/// Tells of a command, and answers the call that started it.
pub(super) struct CommandWords {
    frame: DeltaFrame,
    /// Until it was given.
    reply: Option<Reply>,
}

impl CommandWords {
    pub(super) fn new(process: &Process, reply: Reply) -> Self {
        CommandWords {
            frame: DeltaFrame::command(process.id()),
            reply: Some(reply),
        }
    }
}

impl Words for CommandWords {
    fn delta(&self, frames: &mut Frames, stream: StreamName, bytes: &[u8], last: bool) {
        append_delta(frames, &self.frame, stream, bytes, last);
    }

    // Among the output and not by way of the other answers, which overtake it.
    fn ended(&mut self, frames: &mut Frames, _process: &Process, ended: Ended) {
        let result = CommandResult {
            exit_code: ended.exit_code,
            stdout: ended.stdout,
            stderr: ended.stderr,
        };
        if let Some(reply) = self.reply.take() {
            frames.message(&reply.into_message(Ok(result)));
        }
    }
}
