//! The response of `command/exec`.

use outpost_engine::Process;
use outpost_protocol::{CommandResult, NoMemory};
use outpost_rpc::FrameBuffer;

use crate::{
    connection::{Reply, no_memory},
    dialects::scoped::{ExitMessage, ExitWithOutput},
};

/// Copies of the output in memory: the encoded response, and its frames.
const COPIES: usize = 2;

/// Responds to the request that started a command.
pub(super) struct CommandResponse {
    /// `None` after the response was sent.
    reply: Option<Reply>,
}

impl CommandResponse {
    pub(super) fn new(reply: Reply) -> Self {
        CommandResponse { reply: Some(reply) }
    }
}

impl ExitMessage for CommandResponse {
    // Appended after the output, not sent through the outbox, whose messages overtake it.
    fn encode(&mut self, frames: &mut FrameBuffer, _process: &Process, report: ExitWithOutput) {
        let Some(reply) = self.reply.take() else {
            return;
        };
        let bytes = report.stdout.len() + report.stderr.len();
        let result = NoMemory::unless_room_for(bytes * COPIES)
            .map_err(|_| no_memory("answer"))
            .map(|()| CommandResult {
                exit_code: report.exit_code,
                stdout: report.stdout,
                stderr: report.stderr,
            });
        frames.message(&reply.into_message(result));
    }
}
