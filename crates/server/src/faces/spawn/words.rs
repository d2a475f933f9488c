//! `process/exited`.

use outpost_engine::Process;
use outpost_protocol::{PROCESS_EXITED, SpawnExited};
use outpost_rpc::Frames;

use crate::faces::{
    feed::notify,
    scoped::{Ended, Words},
};

/// Tells how a spawned process ended.
pub(super) struct SpawnWords;

impl Words for SpawnWords {
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
