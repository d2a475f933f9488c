//! The input of a process: a bounded queue before its pipe or terminal.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use outpost_process::Input;
use outpost_types::WriteStatus;
use parking_lot::Mutex;
use tokio::sync::{Mutex as TurnMutex, Notify, watch};

use crate::clock;

/// The status of the first write with an id, which its retries wait for.
type Pending = watch::Receiver<Option<WriteStatus>>;

/// The input of one process. Bytes are written directly to the child if the queue is
/// empty; the actor writes queued bytes.
pub(crate) struct Stdin {
    capacity: usize,
    state: Mutex<State>,
    /// Serializes writers that wait for space, in FIFO order.
    turn: TurnMutex<()>,
    /// Wakes the waiting writer: there is space, or the input has ended.
    space: Notify,
    /// Wakes the actor: bytes were queued.
    work: Notify,
}

/// The input of a process and its queued bytes, behind one lock.
struct State {
    /// `None` once the input has ended.
    input: Option<Arc<Input>>,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// The input ends when the queue is empty; further writes are rejected.
    ending: bool,
    /// Whether the last byte written to a terminal did not end a line.
    mid_line: bool,
    ids: WriteIds,
}

impl Stdin {
    pub(crate) fn new(input: Option<Input>, capacity: usize, ids: usize) -> Self {
        Stdin {
            capacity,
            state: Mutex::new(State {
                input: input.map(Arc::new),
                queue: VecDeque::new(),
                queued: 0,
                ending: false,
                mid_line: false,
                ids: WriteIds::new(ids),
            }),
            turn: TurnMutex::new(()),
            space: Notify::new(),
            work: Notify::new(),
        }
    }

    /// Writes bytes once per id, in the order of the calls, and then ends the input if
    /// `end` is set. Waits while the queue is full.
    pub(crate) async fn write(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        let begun = id.as_deref().map(|id| self.state.lock().ids.begin(id));
        let status_sender = match begun.transpose() {
            Ok(sender) => sender,
            Err(Known::Accepted) => return WriteStatus::Accepted,
            Err(Known::Pending(mut first)) => {
                let status = first.wait_for(Option::is_some).await;
                let status = status.ok().and_then(|status| *status);
                return status.unwrap_or(WriteStatus::StdinClosed);
            }
        };
        let status = self.queue(bytes, id, end).await;
        if let Some(sender) = status_sender {
            sender.send_replace(Some(status));
        }
        status
    }

    async fn queue(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        let _turn = self.turn.lock().await;
        loop {
            {
                let mut state = self.state.lock();
                let closed = state.input.is_none() || state.ending;
                // A write larger than the queue is accepted when the queue is empty.
                if closed || state.queued == 0 || state.queued + bytes.len() <= self.capacity {
                    let status = if closed {
                        WriteStatus::StdinClosed
                    } else {
                        state.push(bytes, end)
                    };
                    match id {
                        Some(id) if status == WriteStatus::Accepted => state.ids.accept(id),
                        Some(id) => state.ids.reject(&id),
                        None => {}
                    }
                    if state.has_work() {
                        self.work.notify_one();
                    }
                    return status;
                }
            }
            self.space.notified().await;
        }
    }

    /// Waits until bytes are queued and can be written. Cancel safe.
    pub(crate) async fn work(&self) {
        let with_work = || {
            let state = self.state.lock();
            state.has_work().then(|| state.input.clone())?
        };
        let input = clock::wait_for(&self.work, with_work).await;
        // An error shows up in the write.
        let _ = input.writable().await;
    }

    /// Writes as many queued bytes as possible without blocking.
    pub(crate) fn flush(&self) {
        self.state.lock().flush();
        self.space.notify_one();
    }

    /// Ends the input and discards queued bytes.
    pub(crate) fn close(&self) {
        self.state.lock().drop_input();
        self.space.notify_one();
    }
}

impl State {
    fn has_work(&self) -> bool {
        self.input.is_some() && (!self.queue.is_empty() || self.ending)
    }

    /// Queues a write and flushes as much as possible.
    fn push(&mut self, bytes: Bytes, end: bool) -> WriteStatus {
        self.ending = end;
        self.queued += bytes.len();
        if !bytes.is_empty() {
            self.queue.push_back(bytes);
        }
        self.flush();
        match self.input {
            None if !end => WriteStatus::StdinClosed,
            _ => WriteStatus::Accepted,
        }
    }

    fn flush(&mut self) {
        while let (Some(input), Some(front)) = (&self.input, self.queue.front_mut()) {
            match input.try_write(front) {
                Ok(written) => {
                    if let Some(last) = front[..written].last() {
                        self.mid_line = *last != b'\n' && *last != b'\r';
                    }
                    front.advance(written);
                    self.queued -= written;
                    if front.is_empty() {
                        self.queue.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.drop_input(),
            }
        }
        if self.ending && self.queue.is_empty() {
            self.end();
        }
    }

    /// Ends the input: closes a pipe, or writes the end-of-file character to a terminal.
    fn end(&mut self) {
        let Some(input) = &self.input else {
            return;
        };
        if input.is_pty() {
            let mark = input.end_of_file_char();
            // In the middle of a line the first character only submits the line.
            let marks = [mark; 2];
            let marks = if self.mid_line {
                &marks[..]
            } else {
                &marks[..1]
            };
            match input.try_write(marks) {
                Ok(written) if written < marks.len() => {
                    self.mid_line = false;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => {}
            }
        }
        self.drop_input();
    }

    fn drop_input(&mut self) {
        self.input = None;
        self.queue.clear();
        self.queued = 0;
        self.ending = true;
    }
}

/// The state of a write id.
#[derive(Clone, Debug)]
enum Known {
    /// The first write with this id is still being queued.
    Pending(Pending),
    /// The write was accepted.
    Accepted,
}

/// The most recent write ids of a process.
struct WriteIds {
    capacity: usize,
    known: HashMap<String, Known>,
    /// Accepted ids, oldest first. Pending ids are never evicted.
    order: VecDeque<String>,
}

impl WriteIds {
    fn new(capacity: usize) -> Self {
        WriteIds {
            capacity,
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Records the first write with this id. Returns the sender of its status, or the state of an id
    /// that is known.
    fn begin(&mut self, id: &str) -> Result<watch::Sender<Option<WriteStatus>>, Known> {
        if let Some(known) = self.known.get(id) {
            return Err(known.clone());
        }
        let (sender, receiver) = watch::channel(None);
        self.known.insert(id.to_owned(), Known::Pending(receiver));
        Ok(sender)
    }

    /// Records that the write was accepted, and evicts the oldest id.
    fn accept(&mut self, id: String) {
        self.known.insert(id.clone(), Known::Accepted);
        self.order.push_back(id);
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Records that the write had no effect, so that it can be retried.
    fn reject(&mut self, id: &str) {
        self.known.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_ids_are_remembered() {
        let mut ids = WriteIds::new(2);
        for id in ["a", "b", "c"] {
            assert!(ids.begin(id).is_ok());
            ids.accept(id.to_owned());
        }
        assert!(matches!(ids.begin("b"), Err(Known::Accepted)));
        assert!(matches!(ids.begin("c"), Err(Known::Accepted)));
        assert!(ids.begin("a").is_ok(), "forgotten");
    }

    #[test]
    fn rejected_write_may_be_retried() {
        let mut ids = WriteIds::new(2);
        let first = ids.begin("a").expect("the id is new");
        let Err(Known::Pending(pending)) = ids.begin("a") else {
            panic!("the write is pending");
        };
        assert!(pending.same_channel(&first.subscribe()));
        ids.reject("a");
        assert!(ids.begin("a").is_ok());
    }
}
