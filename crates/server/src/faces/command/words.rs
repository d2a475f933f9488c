//! The answer of `command/exec`.

use outpost_engine::Process;
use outpost_protocol::CommandResult;
use outpost_rpc::Frames;

use crate::{
    connection::Reply,
    faces::scoped::{Ended, Words},
};

/// Answers the call that started a command.
pub(super) struct CommandWords {
    /// Until it was given.
    reply: Option<Reply>,
}

impl CommandWords {
    pub(super) fn new(reply: Reply) -> Self {
        CommandWords { reply: Some(reply) }
    }
}

impl Words for CommandWords {
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
