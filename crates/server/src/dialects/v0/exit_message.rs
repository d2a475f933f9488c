//! `command/exec/exited`.

use outpost_engine::Process;
use outpost_protocol::{COMMAND_EXITED, V0Exited};
use outpost_rpc::FrameBuffer;

use crate::dialects::{
    feed::notify,
    scoped::{ExitMessage, ExitWithOutput},
};

/// Encodes `command/exec/exited`.
pub(super) struct V0ExitMessage;

impl ExitMessage for V0ExitMessage {
    fn encode(&mut self, frames: &mut FrameBuffer, process: &Process, report: ExitWithOutput) {
        let exited = V0Exited {
            process_id: process.id().to_owned(),
            exit_code: report.exit_code,
        };
        notify(frames, COMMAND_EXITED, &exited);
    }
}
