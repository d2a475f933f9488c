//! `process/exited`.

use outpost_engine::Process;
use outpost_protocol::{PROCESS_EXITED, SpawnExited};
use outpost_rpc::FrameBuffer;

use crate::dialects::{
    feed::notify,
    scoped::{ExitMessage, ExitWithOutput},
};

/// Encodes `process/exited`.
pub(super) struct SpawnExitMessage;

impl ExitMessage for SpawnExitMessage {
    fn encode(&mut self, frames: &mut FrameBuffer, process: &Process, report: ExitWithOutput) {
        let exited = SpawnExited {
            process_handle: process.id().to_owned(),
            exit_code: report.exit_code,
            stdout: report.stdout,
            stdout_cap_reached: report.stdout_cap_reached,
            stderr: report.stderr,
            stderr_cap_reached: report.stderr_cap_reached,
            output_drain_timed_out: report.drain_timed_out,
        };
        notify(frames, PROCESS_EXITED, &exited);
    }
}
