//! `process/outputDelta` and `process/exited`.

use outpost_engine::Process;
use outpost_protocol::{DeltaFrame, PROCESS_EXITED, SpawnExited, StreamName};
use outpost_rpc::Frames;

use crate::faces::{
    feed::notify,
    scoped::{Ended, Words, append_delta},
};

/// Tells of a spawned process.
pub(super) struct SpawnWords {
    frame: DeltaFrame,
}

impl SpawnWords {
    pub(super) fn new(process: &Process) -> Self {
        SpawnWords {
            frame: DeltaFrame::spawn(process.id()),
        }
    }
}

impl Words for SpawnWords {
    fn delta(&self, frames: &mut Frames, stream: StreamName, bytes: &[u8], last: bool) {
        append_delta(frames, &self.frame, stream, bytes, last);
    }

    fn ended(&mut self, frames: &mut Frames, process: &Process, ended: Ended) {
        let exited = SpawnExited {
            process_handle: process.id().to_owned(),
            exit_code: ended.exit_code,
            stdout: ended.stdout,
            stdout_cap_reached: ended.stdout_cap_reached,
            stderr: ended.stderr,
            stderr_cap_reached: ended.stderr_cap_reached,
            output_drain_timed_out: ended.drain_timed_out,
        };
        notify(frames, PROCESS_EXITED, &exited);
    }
}
