//! The input of a process: a bounded queue before its pipe or terminal.

use std::{collections::VecDeque, io, sync::Arc};

use bytes::{Buf, Bytes};
use outpost_process::Input;
use outpost_types::WriteStatus;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as TurnMutex, Notify, watch};

use crate::write_ids::{Known, WriteIds};

/// The status of the first write with an id, which its retries wait for.
type Pending = watch::Receiver<Option<WriteStatus>>;

/// The input of one process. Bytes are written directly to the child if the queue is
/// empty; the actor writes queued bytes.
pub(crate) struct Stdin {
    capacity: usize,
    state: Mutex<State>,
    /// Serializes writers that wait for room, in FIFO order.
    turn: TurnMutex<()>,
    /// Wakes the waiting writer: there is room, or the input has ended.
    room: Notify,
    /// Wakes the actor: bytes were queued.
    work: Notify,
}

struct State {
    /// `None` once the input has ended.
    input: Option<Arc<Input>>,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// The input ends when the queue is empty; further writes are rejected.
    ending: bool,
    /// Whether the last byte written to a terminal did not end a line.
    mid_line: bool,
    ids: WriteIds<Pending>,
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
            room: Notify::new(),
            work: Notify::new(),
        }
    }

    /// Writes bytes once per id, in the order of the calls, and then ends the input if
    /// `end` is set. Waits while the queue is full.
    pub(crate) async fn write(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        let mut retry_of = None;
        let mut status_sender = None;
        if let Some(id) = &id {
            let mut state = self.state();
            match state.ids.get(id) {
                Some(Known::Accepted) => return WriteStatus::Accepted,
                Some(Known::Pending(first)) => retry_of = Some(first.clone()),
                None => {
                    let (sender, receiver) = watch::channel(None);
                    state.ids.begin(id, receiver);
                    status_sender = Some(sender);
                }
            }
        }
        if let Some(mut first) = retry_of {
            let status = first.wait_for(Option::is_some).await;
            return status
                .ok()
                .and_then(|status| *status)
                .unwrap_or(WriteStatus::StdinClosed);
        }
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
                let mut state = self.state();
                if state.input.is_none() || state.ending {
                    if let Some(id) = &id {
                        state.ids.reject(id);
                    }
                    return WriteStatus::StdinClosed;
                }
                // A write larger than the queue is accepted when the queue is empty.
                if state.queued == 0 || state.queued + bytes.len() <= self.capacity {
                    let status = state.push(bytes, end);
                    if let Some(id) = id {
                        match status {
                            WriteStatus::Accepted => state.ids.accept(id),
                            _ => state.ids.reject(&id),
                        }
                    }
                    if state.has_work() {
                        self.work.notify_one();
                    }
                    return status;
                }
            }
            self.room.notified().await;
        }
    }

    /// Waits until bytes are queued and can be written. Cancel safe.
    pub(crate) async fn work(&self) {
        loop {
            let waiting = {
                let state = self.state();
                match &state.input {
                    Some(input) if state.has_work() => Some(Arc::clone(input)),
                    _ => None,
                }
            };
            match waiting {
                Some(input) => {
                    // An error shows up in the write.
                    let _ = input.writable().await;
                    return;
                }
                None => self.work.notified().await,
            }
        }
    }

    /// Writes as many queued bytes as possible without blocking.
    pub(crate) fn flush(&self) {
        self.state().flush();
        self.room.notify_one();
    }

    /// Ends the input and discards queued bytes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.drop_input();
        drop(state);
        self.room.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
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
