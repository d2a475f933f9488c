//! `process/output`, `process/exited`, `process/closed`.

use outpost_engine::{Event, Process};
use outpost_protocol::{OutputFrame, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessExited};
use outpost_rpc::Frames;

use crate::{
    convert,
    faces::feed::{Teller, notify},
};

/// Tells of a process event by event.
pub(crate) struct EventTeller {
    process: Process,
    frame: OutputFrame,
}

impl EventTeller {
    pub(crate) fn new(process: &Process) -> Self {
        EventTeller {
            process: process.clone(),
            frame: OutputFrame::new(process.id()),
        }
    }
}

impl Teller for EventTeller {
    fn tell(&mut self, frames: &mut Frames, event: &Event) {
        match event {
            Event::Output(chunk) => {
                let stream = convert::stream_name(chunk.stream);
                let len = self
                    .frame
                    .encoded_len(chunk.seq.0, stream, chunk.bytes.len());
                let out = frames.begin(len);
                self.frame.encode(out, chunk.seq.0, stream, &chunk.bytes);
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
