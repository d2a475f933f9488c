//! Operations on the processes of a session: by process id, and their list.

use std::{
    io,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use outpost_journal::Seq;
use outpost_types::{Delivery, PathUri, ProcessEntry, ProcessState, Signal, TerminalSize};

use super::Session;
use crate::{Process, ProcessInfo, ReadError, ResizeError, WriteStatus};

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
        if self.state().slots.cancel(id) {
            self.shared.start_finished.notify_waiters();
            return Terminated::Running;
        }
        let Ok(process) = self.find(id) else {
            return Terminated::NotRunning;
        };
        if process.is_running() {
            process.terminate(grace);
            return Terminated::Running;
        }
        if tree {
            process.terminate(grace);
            if process.is_done() {
                let wait = async move { process.wait_until_dead().await };
                self.shared.tasks.spawn(wait);
            }
        }
        Terminated::NotRunning
    }

    /// Resizes a process's terminal.
    pub fn resize(&self, id: &str, size: TerminalSize) -> Result<(), ResizeError> {
        let process = self.find(id);
        let process = process.map_err(|_| ResizeError::Unknown(id.to_owned()))?;
        if !process.is_pty() {
            return Err(ResizeError::NotATerminal(id.to_owned()));
        }
        match process.resize(size) {
            // Resizing a closed terminal is not an error: a window often changes while a
            // process exits.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result.map_err(|source| ResizeError::Os {
                id: id.to_owned(),
                source,
            }),
        }
    }

    /// Lists the processes, including those that are starting, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ProcessEntry> {
        let state = self.state();
        let starting: Vec<_> = state.slots.starting().cloned().collect();
        let live: Vec<_> = state.slots.live().cloned().collect();
        drop(state);
        let starting = starting
            .iter()
            .map(|info| (info.order, starting_entry(info)));
        let live = live
            .iter()
            .map(|process| (process.info().order, live_entry(process)));
        let mut entries: Vec<_> = starting.chain(live).collect();
        entries.sort_by_key(|(order, _)| *order);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

fn starting_entry(info: &ProcessInfo) -> ProcessEntry {
    let since_epoch = info.started_at.duration_since(UNIX_EPOCH);
    ProcessEntry {
        process_id: info.id.clone(),
        pid: None,
        argv: info.argv.clone(),
        cwd: PathUri::from_path(&info.cwd),
        tty: info.tty,
        started_at_ms: since_epoch.map_or(0, |since| since.as_millis() as u64),
        state: ProcessState::Starting,
        exit_code: None,
        next_seq: 1,
        bytes_out: 0,
        ended_by: None,
        usage: None,
    }
}

fn live_entry(process: &Process) -> ProcessEntry {
    let summary = process.summary();
    ProcessEntry {
        pid: Some(process.pid()),
        state: summary.state,
        exit_code: summary.exit.map(|exit| exit.code),
        next_seq: summary.next_seq.0,
        bytes_out: summary.bytes_out,
        ended_by: summary.exit.and_then(|exit| exit.ended_by),
        usage: summary.exit.and_then(|exit| exit.usage),
        ..starting_entry(process.info())
    }
}
