//! The input of a process: a bounded queue in front of its pipe or terminal.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Buf, Bytes};
use outpost_process::Input;
use tokio::sync::{Mutex as TurnMutex, Notify, watch};

use crate::write_ids::{Known, WriteIds};

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    /// Queued in order; it will reach the child if the child reads.
    Accepted,
    /// No such process.
    UnknownProcess,
    /// There is no input, or it has ended.
    StdinClosed,
    /// The process is still starting.
    Starting,
}

/// What retries of a write wait on: the first one's answer.
type Pending = watch::Receiver<Option<WriteStatus>>;

/// The input of one process. Bytes are written straight to the child when
/// nothing waits before them; the actor writes what had to be queued.
pub(crate) struct Stdin {
    capacity: usize,
    state: Mutex<State>,
    /// Writers that wait for room do so one after the other, in their order.
    turn: TurnMutex<()>,
    /// Wakes the writer whose turn it is: there is room, or no input any more.
    room: Notify,
    /// Wakes the actor: there is something to write.
    work: Notify,
}

struct State {
    /// The child's end of things, until the input has ended.
    input: Option<Arc<Input>>,
    queue: VecDeque<Bytes>,
    queued: usize,
    /// The input ends when the queue is empty; nothing may be added.
    ending: bool,
    /// Whether the terminal is in the middle of a line, as far as we typed it.
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

    /// Writes bytes once per id, in the order of the calls, and ends the input
    /// after them if asked to. Waits while the queue is full.
    pub(crate) async fn write(&self, bytes: Bytes, id: Option<String>, end: bool) -> WriteStatus {
        let mut retry_of = None;
        let mut answer = None;
        if let Some(id) = &id {
            let mut state = self.state();
            match state.ids.get(id) {
                Some(Known::Accepted) => return WriteStatus::Accepted,
                Some(Known::Pending(first)) => retry_of = Some(first.clone()),
                None => {
                    let (sender, receiver) = watch::channel(None);
                    state.ids.begin(id, receiver);
                    answer = Some(sender);
                }
            }
        }
        if let Some(mut first) = retry_of {
            let answered = first.wait_for(Option::is_some).await;
            return answered
                .ok()
                .and_then(|status| *status)
                .unwrap_or(WriteStatus::StdinClosed);
        }
        let status = self.queue(bytes, id, end).await;
        if let Some(answer) = answer {
            answer.send_replace(Some(status));
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
                        state.ids.refuse(id);
                    }
                    return WriteStatus::StdinClosed;
                }
                // One write may be larger than the whole queue; it goes in
                // when it is alone.
                if state.queued == 0 || state.queued + bytes.len() <= self.capacity {
                    let status = state.take(bytes, end);
                    if let Some(id) = id {
                        match status {
                            WriteStatus::Accepted => state.ids.accept(id),
                            _ => state.ids.refuse(&id),
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

    /// Waits until there is something to write, and the child can take it.
    /// Cancel-safe.
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
                    // An error shows at the write.
                    let _ = input.writable().await;
                    return;
                }
                None => self.work.notified().await,
            }
        }
    }

    /// Writes what the child takes now.
    pub(crate) fn flush(&self) {
        self.state().flush();
        self.room.notify_one();
    }

    /// There is no input any more: the process is closed, or is to be.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.drop_input();
        drop(state);
        self.room.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_work(&self) -> bool {
        self.input.is_some() && (!self.queue.is_empty() || self.ending)
    }

    /// Takes a write in: straight to the child as far as possible.
    fn take(&mut self, bytes: Bytes, end: bool) -> WriteStatus {
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

    /// Ends the input after everything before it: a pipe is closed, a terminal
    /// is told so by its end-of-file character.
    fn end(&mut self) {
        let Some(input) = &self.input else {
            return;
        };
        if input.is_pty() {
            let mark = input.end_of_file_char();
            // In the middle of a line the first one only hands the line over.
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
