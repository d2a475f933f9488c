//! All processes of a session: routes events, sends acknowledgements, reads missing events.
//!
//! - [`entries`]: the state of each process id: followed, orphaned or unclaimed
//! - [`remote_process`]: a followed process; its [`assembler`] orders events, and events that no
//!   notification carried are read
//! - [`acks`]: which events to acknowledge, and when
//! - [`start_guard`]: undoes a start whose caller stops waiting

mod acks;
mod assembler;
mod entries;
mod remote_process;
mod start_guard;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use outpost_journal::{Event, Seq};
use outpost_protocol::{AckParams, PROCESS_ACK, RpcError};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::sleep_until};

use self::{
    acks::Acks,
    entries::{Entries, EventRoute, Unclaimed},
    remote_process::{ReceiveOutcome, is_valid_seq},
};
pub(super) use self::{
    remote_process::{RemoteProcess, read_after},
    start_guard::StartGuard,
};
use super::{
    connection::{Connection, PendingStart},
    session::{Session, now},
};
use crate::{Error, process::output_len};

/// Delay before a request is repeated that an overloaded server rejected.
pub(super) const OVERLOAD_DELAY: Duration = Duration::from_millis(200);

/// Bytes of a cursor in JSON without the id: a colon, a number and a comma.
const CURSOR_BYTES: usize = 22;

/// The processes of a session.
pub(super) struct ProcessTable {
    pub(super) session: Arc<Session>,
    entries: Mutex<Entries<Arc<RemoteProcess>>>,
    acks: Mutex<Acks>,
    /// Wakes the task that sends acknowledgements: a deadline may be earlier than it assumes.
    deadline_changed: Notify,
}

impl ProcessTable {
    pub(super) fn new(session: Arc<Session>) -> Self {
        let limits = &session.options.limits;
        ProcessTable {
            entries: Mutex::new(Entries::new(limits.attach_timeout)),
            acks: Mutex::new(Acks::new(limits.clone())),
            deadline_changed: Notify::new(),
            session,
        }
    }

    /// Returns all followed processes.
    pub(super) fn followed(&self) -> Vec<Arc<RemoteProcess>> {
        self.entries.lock().followed().cloned().collect()
    }

    /// Inserts a process that is about to be started: its events may arrive before the response.
    fn insert_starting(self: &Arc<Self>, id: &str) -> Result<Arc<RemoteProcess>, Error> {
        let mut entries = self.entries.lock();
        if entries.get(id).is_some_and(|known| !known.log.is_ended()) {
            let text = format!("process {id} already exists");
            return Err(Error::from(RpcError::invalid_request(text)).of_start());
        }
        let process = RemoteProcess::starting(self, id);
        entries.insert(id, Arc::clone(&process));
        Ok(process)
    }

    /// Returns the process with this id, or inserts it. The flag is whether it is new: the
    /// caller then calls [`Self::read_missing`], after it has created a handle.
    pub(super) fn get_or_attach(
        self: &Arc<Self>,
        id: &str,
        after: Seq,
    ) -> (Arc<RemoteProcess>, bool) {
        let mut entries = self.entries.lock();
        if let Some(process) = entries.get(id) {
            return (Arc::clone(process), false);
        }
        let process = RemoteProcess::attached(self, id, after);
        entries.insert(id, Arc::clone(&process));
        (process, true)
    }

    /// Stops following a process. Returns the entries, locked.
    fn remove(&self, process: &Arc<RemoteProcess>) -> MutexGuard<'_, Entries<Arc<RemoteProcess>>> {
        let mut entries = self.entries.lock();
        entries.remove_if(process.id(), |known| Arc::ptr_eq(known, process));
        entries
    }

    /// Stops following a process and discards its events from now on.
    fn orphan(&self, process: &Arc<RemoteProcess>) {
        self.remove(process).orphan(process.id());
    }

    /// Removes a process that has ended and has no handle.
    pub(super) fn remove_if_unused(&self, process: &Arc<RemoteProcess>) {
        if process.log.is_unused() {
            drop(self.remove(process));
        }
    }

    /// Fails one process. Terminates it only if it would end with its last handle.
    fn fail_process(&self, process: &Arc<RemoteProcess>, error: Error) {
        if process.is_pending() {
            // The caller that waits for it gets the error.
            tracing::debug!(process = process.id(), %error, "cannot start or attach to process");
        } else {
            tracing::warn!(process = process.id(), %error, "cannot follow process");
        }
        let terminate = process.ends_with_handle();
        self.orphan(process);
        process.fail(error);
        if terminate {
            self.terminate_orphan(process.id());
        }
    }

    /// Fails and removes every followed process.
    pub(super) fn fail_all(&self, error: &Error) {
        let processes = self.entries.lock().drain_followed();
        for process in processes {
            process.fail(error.clone());
        }
    }

    /// Handles the response to a start whose caller has stopped waiting.
    pub(super) fn finish_abandoned_start(&self, start: &PendingStart, rejected: bool) {
        if rejected {
            // A process with this id belongs to another start.
            self.entries.lock().close_orphan(&start.id);
        } else if !start.generated_id {
            self.terminate_orphan(&start.id);
        }
    }

    /// Terminates a process now, or as soon as the session is connected.
    pub(super) fn terminate_orphan(&self, id: &str) {
        self.entries.lock().add_termination(id);
        if let Some(connection) = self.session.connection_now() {
            connection.terminate_orphan(id.to_owned());
        }
    }

    /// Adds processes whose start has no response because the connection was lost.
    pub(super) fn add_orphaned_starts(&self, ids: Vec<String>) {
        let mut entries = self.entries.lock();
        for id in ids {
            // A followed process with this id stays followed: it was attached, or is a retry.
            entries.orphan(&id);
            entries.add_termination(&id);
        }
    }

    /// Returns the processes that are still to be terminated by a request to the server.
    pub(super) fn pending_terminations(&self) -> Vec<String> {
        self.entries.lock().terminations().to_vec()
    }

    pub(super) fn termination_confirmed(&self, id: &str) {
        self.entries.lock().remove_termination(id);
    }

    /// Handles an event from the server. Ignored unless the connection is the current one.
    /// `incomplete` marks an exit that a read must complete.
    pub(super) fn receive(
        self: &Arc<Self>,
        connection: &Connection,
        id: &str,
        event: Event,
        incomplete: bool,
    ) {
        let seq = event.seq();
        if !self.session.is_current(connection) {
            return;
        }
        if !is_valid_seq(seq) {
            return tracing::warn!(process = id, %seq, "event number out of range");
        }
        let closed = matches!(event, Event::Closed { .. });
        let acked = self.session.is_acked();
        let recipient = self.entries.lock().route(id, seq, closed, acked, now());
        match recipient {
            EventRoute::Followed(process) => match process.receive(event, incomplete, acked) {
                Ok(progress) => self.apply(&process, &progress),
                Err(error) => self.fail_process(&process, error),
            },
            // Acknowledge, so that the process is not held back.
            EventRoute::Orphaned => self.acknowledge(id, seq, output_len(&event), closed),
            // The process may be new, and its expiry the next deadline.
            EventRoute::Unclaimed => self.deadline_changed.notify_one(),
            EventRoute::TooMany => self.acknowledge_now(id, seq),
            EventRoute::None => {}
        }
    }

    /// Orphans unclaimed processes after the attach timeout, so that they are not held back.
    fn expire_unclaimed(&self) {
        let expired = self.entries.lock().expire(now());
        for (id, Unclaimed { last, closed, .. }) in expired {
            tracing::debug!(process = id, closed, "no client attached in time");
            self.acknowledge(&id, last, self.session.options.limits.ack_bytes, closed);
        }
    }

    /// Acknowledges, removes or reads more after events were appended.
    fn apply(self: &Arc<Self>, process: &Arc<RemoteProcess>, progress: &ReceiveOutcome) {
        if let Some((seq, bytes)) = progress.ackable {
            self.acknowledge(process.id(), seq, bytes, progress.closed);
        }
        if progress.closed {
            self.remove_if_unused(process);
        } else if progress.incomplete {
            self.read_missing(process);
        }
    }

    fn acknowledge(&self, id: &str, seq: Seq, bytes: usize, closed: bool) {
        if !self.session.is_acked() {
            return;
        }
        let now = now();
        let (due, before) = {
            let mut acks = self.acks.lock();
            let before = acks.next_due();
            (acks.add(id, seq, bytes, closed, now), before)
        };
        let sent = due <= now && self.send_due_acks(now);
        if !sent && before.is_none_or(|before| due < before) {
            self.deadline_changed.notify_one();
        }
    }

    /// Acknowledges without delay, because the server may be waiting.
    fn acknowledge_now(&self, id: &str, seq: Seq) {
        let bytes = self.session.options.limits.ack_bytes;
        self.acknowledge(id, seq, bytes, false);
    }

    /// Sends the acknowledgements that are due. Returns false if the session is not connected.
    fn send_due_acks(&self, now: Instant) -> bool {
        let Some(connection) = self.session.connection_now() else {
            return false;
        };
        for (process_id, seq) in self.acks.lock().take_due(now) {
            let params = AckParams {
                process_id,
                seq: seq.0,
            };
            connection.notify(PROCESS_ACK, &params);
        }
        true
    }

    /// Sends delayed acknowledgements and expires unclaimed processes until the session ends.
    pub(super) async fn run_acks(self: Arc<Self>) {
        let session = &self.session;
        loop {
            let ack_due = self.acks.lock().next_due();
            let expiry = self.entries.lock().next_expiry();
            let deadline = async {
                match ack_due.into_iter().chain(expiry).min() {
                    Some(deadline) => sleep_until(deadline.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = deadline => {}
                () = self.deadline_changed.notified() => continue,
                () = session.closing.cancelled() => return,
            }
            self.expire_unclaimed();
            if !self.send_due_acks(now()) {
                tokio::select! {
                    connection = session.connection() => if connection.is_err() { return },
                    () = session.closing.cancelled() => return,
                }
            }
        }
    }

    /// Returns the cursor of each process for resuming the session: first the cursors that fit into the
    /// first message of a connection, then the rest. For a process of the rest, the server sends all
    /// events after the last acknowledged event; events that were already received are dropped.
    pub(super) fn resume_from(&self) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
        let mut left = self.session.options.limits.resume_bytes;
        let mut fits = |id: &str| {
            let bytes = serde_json::to_string(id).map_or(usize::MAX, |id| id.len());
            let rest = left.checked_sub(bytes.saturating_add(CURSOR_BYTES));
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        self.cursors().into_iter().partition(|(id, _)| fits(id))
    }

    /// Returns the last event of each process that can be acknowledged.
    fn cursors(&self) -> BTreeMap<String, u64> {
        if !self.session.is_acked() {
            return BTreeMap::new();
        }
        let mut from: BTreeMap<_, _> = self.acks.lock().closed().collect();
        for process in self.followed() {
            from.insert(process.id().to_owned(), process.ackable().0);
        }
        from
    }

    /// Records that a connection has resumed the session after the events `from`. Acknowledges the
    /// events of the other processes on this connection.
    pub(super) fn resumed(
        &self,
        connection: &Connection,
        from: &BTreeMap<String, u64>,
        others: BTreeMap<String, u64>,
    ) {
        self.acks.lock().resumed(from);
        for (process_id, seq) in others {
            // If this message is lost with the connection, the next resume repeats it.
            connection.notify(PROCESS_ACK, &AckParams { process_id, seq });
        }
        self.deadline_changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use outpost_journal::Exit;

    use super::*;
    use crate::{DialError, Dialer, RemoteOptions, Transport};

    struct UnreachableDialer;

    impl Dialer for UnreachableDialer {
        fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
            Box::pin(async { Err(DialError::Spent) })
        }

        fn name(&self) -> String {
            "unreachable".to_owned()
        }
    }

    #[test]
    fn events_of_old_connections_are_ignored() {
        let session = Session::new(Arc::new(UnreachableDialer), RemoteOptions::default());
        let table = Arc::new(ProcessTable::new(Arc::new(session)));
        let process = table.insert_starting("p").unwrap();
        let old = table.session.next_connection();
        let new = table.session.next_connection();
        let exit = Exit {
            code: 3,
            sandbox_denied: false,
            ..Exit::default()
        };
        let exited = Event::Exited { seq: Seq(1), exit };
        table.receive(&old, "p", exited.clone(), false);
        assert!(process.log.exit().is_none());
        table.receive(&new, "p", exited, false);
        assert_eq!(process.log.exit().map(|exit| exit.code), Some(3));
    }
}
