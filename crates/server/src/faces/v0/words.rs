//! `command/exec/exited`.

use outpost_engine::Process;
use outpost_protocol::{COMMAND_EXITED, V0Exited};
use outpost_rpc::Frames;

use crate::faces::{
    feed::notify,
    scoped::{Ended, Words},
};

/// Tells how a process ended.
pub(super) struct V0Words;

impl Words for V0Words {
    fn ended(&mut self, frames: &mut Frames, process: &Process, ended: Ended) {
        let exited = V0Exited {
            process_id: process.id().to_owned(),
            exit_code: ended.exit_code,
        };
        notify(frames, COMMAND_EXITED, &exited);
    }
}
