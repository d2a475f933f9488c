//! What can be done with the processes of a session, by their names.

use std::{io, time::Duration};

use bytes::Bytes;
use outpost_journal::Seq;
use outpost_process::{Signal, Size};

use super::{Delivery, Session};
use crate::{ReadError, ResizeError, WriteStatus};

/// What a terminate found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// It was running, or about to, and is being ended.
    Running,
    /// There was nothing to end.
    NotRunning,
}

impl Session {
    /// Writes to a process.
    pub async fn write(
        &self,
        id: &str,
        bytes: Bytes,
        write_id: Option<String>,
        end: bool,
    ) -> WriteStatus {
        match self.find(id) {
            Ok(process) => process.write(bytes, write_id, end).await,
            Err(ReadError::Starting(_)) => WriteStatus::Starting,
            Err(ReadError::Unknown(_)) => WriteStatus::UnknownProcess,
        }
    }

    /// The client has everything of a process up to `seq`. Unknown processes
    /// are not worth an answer.
    pub fn acknowledge(&self, id: &str, seq: Seq) {
        if self.delivery() == Delivery::Acked
            && let Ok(process) = self.find(id)
        {
            process.advance(seq);
        }
    }

    /// Signals a process; nobody there is nobody signalled.
    pub fn signal(&self, id: &str, signal: Signal) {
        if let Ok(process) = self.find(id) {
            process.signal(signal);
        }
    }

    /// Ends a process, or the start of one; `tree` also ends what one that has
    /// exited left running.
    pub fn terminate(&self, id: &str, grace: Option<Duration>, tree: bool) -> Terminated {
        if self.with_slots(|slots| slots.cancel(id)) {
            self.start_settled();
            return Terminated::Running;
        }
        let found = self.find(id);
        let Ok(process) = found else {
            return Terminated::NotRunning;
        };
        if process.is_running() {
            process.end(grace);
            return Terminated::Running;
        }
        if tree {
            process.end_leftovers(grace);
            if process.is_done() {
                let seen_off = async move { process.see_the_ladder_through().await };
                self.shared.tasks.spawn(seen_off);
            }
        }
        Terminated::NotRunning
    }

    /// Gives a process's terminal another size.
    pub fn resize(&self, id: &str, size: Size) -> Result<(), ResizeError> {
        let process = self
            .find(id)
            .map_err(|_| ResizeError::Unknown(id.to_owned()))?;
        if !process.is_pty() {
            return Err(ResizeError::NotATerminal(id.to_owned()));
        }
        match process.resize(size) {
            // A window often changes while a process ends. The terminal of one that
            // has ended has no size, and nobody misses it.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            Err(source) => Err(ResizeError::Os {
                id: id.to_owned(),
                source,
            }),
            Ok(()) => Ok(()),
        }
    }
}
