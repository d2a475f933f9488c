//! Captures the states of login shells and starts commands with them.

use std::{sync::Arc, time::Duration};

use outpost_process::{Command, Stdio};
use outpost_types::{Seq, Stream};
use tokio::time::timeout;

use super::{Engine, Spawned};
use crate::{
    Delivery, Process, ProcessInfo, Reservation, Session, Start, StartError,
    shell_snapshot::{
        Charge, Marker, Progress, Snapshot, SnapshotEntry, SnapshotRequest, StateReader,
    },
};

/// How much of the output is read at once.
const PAGE_BYTES: usize = 64 * 1024;

impl Engine {
    /// Returns the command of a start: with the snapshot of its login shell, which is captured if there
    /// is none yet, or as requested if the start asks for no snapshot or none can be captured.
    pub(super) async fn command(
        &self,
        session: &Session,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<Command, StartError> {
        let Some(request) = &start.snapshot else {
            return Ok(start.command());
        };
        let share = self.shared.output_budget.share(session.peer());
        let max = self.shared.limits.shell_snapshots;
        let Some(entry) = session.snapshot_entry(request.key(start), share, max) else {
            return Ok(start.command());
        };
        let snapshot = self.snapshot(session, reservation, (start, request), &entry);
        let snapshot = match snapshot.await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                reservation.check()?;
                tracing::debug!(%error, "cannot start a shell to capture its state");
                None
            }
        };
        let restored = snapshot.map(|snapshot| snapshot.command(request, start));
        let restored = restored.transpose().unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot pass the state of a shell");
            None
        });
        Ok(restored.flatten().unwrap_or_else(|| start.command()))
    }

    /// Returns the snapshot of an entry, or `None` if its capture has failed. The first start captures
    /// it, and others wait. If the first is cancelled or its shell cannot be started, the next one
    /// captures.
    async fn snapshot<'a>(
        &self,
        session: &Session,
        reservation: &Reservation,
        (start, request): (&Start, &SnapshotRequest),
        entry: &'a SnapshotEntry,
    ) -> Result<Option<&'a Snapshot>, StartError> {
        if let Some(outcome) = entry.outcome.get() {
            return Ok(outcome.as_ref());
        }
        let _turn = tokio::select! {
            turn = entry.turn.acquire() => turn,
            error = reservation.cancelled() => return Err(error),
        };
        if let Some(outcome) = entry.outcome.get() {
            return Ok(outcome.as_ref());
        }
        let captured = self.capture(session, reservation, start, request).await?;
        Ok(entry.outcome.get_or_init(|| captured).as_ref())
    }

    /// Runs the login shell to capture its state. Returns `None` if the profile ends the shell, takes too
    /// long or leaves too much state.
    ///
    /// The shell is a process of the session and counts as one of its peer. Processes that the profile
    /// leaves running, such as an agent that its variables name, end with the session.
    async fn capture(
        &self,
        session: &Session,
        reservation: &Reservation,
        start: &Start,
        request: &SnapshotRequest,
    ) -> Result<Option<Snapshot>, StartError> {
        let limits = &self.shared.limits;
        let marker = Marker::random();
        let capture = Start {
            argv: request.capturing_argv(start, &marker),
            arg0: None,
            stdio: Stdio::Pipes { stdin: false },
            timeout: Some(limits.shell_snapshot_timeout),
            drain: Some(Duration::ZERO),
            retain_bytes: Some(0),
            snapshot: None,
            observer: None,
            ..start.clone()
        };
        let permit = self.process_permit(session.peer(), start.max_processes)?;
        let command = capture.command();
        // A managed network is not served meanwhile: the proxy is that of the command.
        let (child, resources) = self.spawn(reservation, &capture, &command).await?;
        let spawned = Spawned {
            child,
            resources,
            network: None,
            permit,
        };
        let info = Arc::new(ProcessInfo::new(&capture, 0));
        let process = self.register(session, info, &capture, spawned);
        let mut shell = CapturingShell {
            process,
            is_done: false,
        };
        if !session.keep_leftover(&shell.process) {
            return Err(StartError::SessionEnded);
        }
        let mut reader = StateReader::new(&marker);
        let mut charge = Charge::new(self.shared.output_budget.share(session.peer()));
        let state = shell.read_state(&mut reader, &mut charge, limits.shell_snapshot_bytes);
        let is_complete = tokio::select! {
            state = timeout(limits.shell_snapshot_timeout, state) => state.unwrap_or(false),
            error = reservation.cancelled() => return Err(error),
        };
        if !is_complete {
            tracing::debug!(
                process = start.id,
                "cannot capture the state of a login shell"
            );
            return Ok(None);
        }
        Ok(Snapshot::new(request, &reader, &capture, charge))
    }
}

/// A shell that prints its state. Dropping this kills its tree, unless it is done.
struct CapturingShell {
    process: Process,
    /// Whether the shell has printed its state or exited.
    is_done: bool,
}

impl CapturingShell {
    /// Reads the state until it is complete. Returns false if the shell ends before, or the state exceeds
    /// `limit` or the free memory.
    async fn read_state(
        &mut self,
        reader: &mut StateReader,
        charge: &mut Charge,
        limit: usize,
    ) -> bool {
        let mut after = Seq::START;
        loop {
            self.process.wait_unseen_for(after).await;
            let page = self.process.page(after, Some(PAGE_BYTES));
            if page.chunks.is_empty() && page.closed {
                self.is_done = true;
                return false;
            }
            for chunk in &page.chunks {
                if chunk.stream == Stream::Stdout && !self.is_done {
                    self.is_done = reader.push(&chunk.bytes) == Progress::Complete;
                }
            }
            let bytes = reader.state().len();
            if bytes > limit || !charge.grow(bytes) {
                self.is_done = false;
                return false;
            }
            if self.is_done {
                return true;
            }
            after = Seq(page.next_seq.0 - 1);
            self.process.advance(after);
        }
    }
}

impl Drop for CapturingShell {
    fn drop(&mut self) {
        if !self.is_done {
            self.process.terminate(Some(Duration::ZERO));
        }
        // The rest is not read.
        self.process.detach(Delivery::Push);
    }
}
