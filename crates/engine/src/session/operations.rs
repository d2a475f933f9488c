//! Operations on the processes of a session, by process id.

use std::{io, time::Duration};

use bytes::Bytes;
use outpost_journal::Seq;
use outpost_types::{Delivery, Signal, TerminalSize};

use super::Session;
use crate::{ReadError, ResizeError, WriteStatus};

/// The result of a terminate request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// The process was starting or running and is being terminated.
    Running,
    /// There was nothing to terminate.
    NotRunning,
}

impl Session {
    /// Writes to the input of a process.
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

    /// Acknowledges the events of a process up to `seq`. Unknown processes are ignored.
    pub fn acknowledge(&self, id: &str, seq: Seq) {
        if self.delivery() == Delivery::Acked
            && let Ok(process) = self.find(id)
        {
            process.advance(seq);
        }
    }

    /// Signals a process. Unknown processes are ignored.
    pub fn signal(&self, id: &str, signal: Signal) {
        if let Ok(process) = self.find(id) {
            process.signal(signal);
        }
    }

    /// Terminates a process or cancels its start. With `tree`, also terminates leftover
    /// processes of an exited one.
    pub fn terminate(&self, id: &str, grace: Option<Duration>, tree: bool) -> Terminated {
        if self.with_slots(|slots| slots.cancel(id)) {
            self.notify_start_finished();
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
                let wait = async move { process.wait_until_dead().await };
                self.shared.tasks.spawn(wait);
            }
        }
        Terminated::NotRunning
    }

    /// Resizes a process's terminal.
    pub fn resize(&self, id: &str, size: TerminalSize) -> Result<(), ResizeError> {
        let process = self
            .find(id)
            .map_err(|_| ResizeError::Unknown(id.to_owned()))?;
        if !process.is_pty() {
            return Err(ResizeError::NotATerminal(id.to_owned()));
        }
        match process.resize(size) {
            // Resizing a closed terminal is not an error: a window often changes while a
            // process exits.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            Err(source) => Err(ResizeError::Os {
                id: id.to_owned(),
                source,
            }),
            Ok(()) => Ok(()),
        }
    }
}
