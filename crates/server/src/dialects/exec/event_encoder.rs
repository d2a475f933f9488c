//! `process/output`, `process/exited`, `process/closed`.

use outpost_engine::{Event, Process};
use outpost_protocol::{OutputFrame, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessExited};
use outpost_rpc::FrameBuffer;

use crate::dialects::feed::{EventEncoder, notify};

/// Encodes each event of a process as one notification.
pub(crate) struct ExecEventEncoder {
    process: Process,
    frame: OutputFrame,
}

impl ExecEventEncoder {
    pub(crate) fn new(process: &Process) -> Self {
        ExecEventEncoder {
            process: process.clone(),
            frame: OutputFrame::new(process.id()),
        }
    }
}

impl EventEncoder for ExecEventEncoder {
    fn encode(&mut self, frames: &mut FrameBuffer, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let len = self
                    .frame
                    .encoded_len(chunk.seq.0, chunk.stream, chunk.bytes.len());
                let out = frames.begin(len);
                self.frame
                    .encode(out, chunk.seq.0, chunk.stream, &chunk.bytes);
                frames.finish();
            }
            Event::Exited { seq, exit } => notify(
                frames,
                PROCESS_EXITED,
                &ProcessExited {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                    exit_code: exit.code,
                    sandbox_denied: exit.sandbox_denied,
                },
            ),
            Event::Closed { seq, .. } => notify(
                frames,
                PROCESS_CLOSED,
                &ProcessClosed {
                    process_id: self.process.id().to_owned(),
                    seq: seq.0,
                },
            ),
        }
    }
}
