//! `command/exec/outputDelta` and `command/exec/exited`.

use outpost_engine::Process;
use outpost_protocol::{COMMAND_EXITED, DeltaFrame, StreamName, V0Exited};
use outpost_rpc::Frames;

use crate::faces::{
    feed::notify,
    scoped::{Ended, Words, append_delta},
};

/// Tells of a process.
pub(super) struct V0Words {
    frame: DeltaFrame,
}

impl V0Words {
    pub(super) fn new(process: &Process) -> Self {
        V0Words {
            frame: DeltaFrame::v0(process.id()),
        }
    }
}

impl Words for V0Words {
    fn delta(&self, frames: &mut Frames, stream: StreamName, bytes: &[u8], last: bool) {
        append_delta(frames, &self.frame, stream, bytes, last);
    }

    fn ended(&mut self, frames: &mut Frames, process: &Process, ended: Ended) {
        let exited = V0Exited {
            process_id: process.id().to_owned(),
            exit_code: ended.exit_code,
        };
        notify(frames, COMMAND_EXITED, &exited);
    }
}
