//! The answer of `command/exec`.

use outpost_engine::Process;
use outpost_protocol::{CommandResult, NoMemory};
use outpost_rpc::Frames;

use crate::{
    connection::{Reply, no_memory},
    faces::scoped::{Ended, Words},
};

/// An answer is written down once, and once more among the frames.
const COPIES: usize = 2;

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
        let Some(reply) = self.reply.take() else {
            return;
        };
        let kept = ended.stdout.len() + ended.stderr.len();
        let result = NoMemory::unless_room_for(kept * COPIES)
            .map_err(|_| no_memory("answer"))
            .map(|()| CommandResult {
                exit_code: ended.exit_code,
                stdout: ended.stdout,
                stderr: ended.stderr,
            });
        frames.message(&reply.into_message(result));
    }
}
