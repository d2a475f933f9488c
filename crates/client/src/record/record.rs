//! The record of a process.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use outpost_journal::{End, Exit, Journal, Limits, Seq};
use tokio::sync::watch;

use super::readers::Readers;
use crate::{Error, Event, Page, event::Fact};

/// How many bytes a stream takes over in one go.
const BATCH_BYTES: usize = 256 * 1024;

/// The exit of a process that was closed without one.
const UNKNOWN_EXIT: Exit = Exit {
    code: -1,
    sandbox_denied: false,
};

/// Where the facts of a record come from.
pub(crate) trait Source: Send + Sync {
    /// There is room again where there was none. Called by whoever has read:
    /// it must be quick.
    fn room(&self);
}

/// What is known of one process.
pub(crate) struct Record {
    id: String,
    limits: Limits,
    inside: Mutex<Inside>,
    /// The number of the last event, for those who poll; marked as changed at a
    /// failure too.
    last: watch::Sender<u64>,
    source: Box<dyn Source>,
}

struct Inside {
    journal: Journal,
    readers: Readers,
    failure: Option<Error>,
}

impl Record {
    pub(crate) fn new(id: String, limits: Limits, after: Seq, source: Box<dyn Source>) -> Self {
        let mut journal = Journal::starting_after(limits, after);
        journal.attach(after);
        Record {
            id,
            limits,
            inside: Mutex::new(Inside {
                journal,
                readers: Readers::expecting_one_at(after),
                failure: None,
            }),
            last: watch::Sender::new(after.0),
            source,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Begins anew behind another number, before anything was published; `exit`
    /// if the process had exited by then.
    pub(crate) fn begin_after(&self, after: Seq, exit: Option<Exit>) {
        let mut inside = self.inside();
        inside.journal = Journal::starting_after(self.limits, after);
        if let Some(exit) = exit {
            inside.journal.had_exited(exit);
        }
        inside.readers.begin_after(after);
        inside.settle();
        self.announce(inside);
    }

    /// Appends what comes next, and says whether there is room for more. Nothing
    /// follows a failure.
    pub(crate) fn publish(&self, facts: impl IntoIterator<Item = Fact>) -> bool {
        let mut inside = self.inside();
        if inside.failure.is_some() {
            return true;
        }
        for fact in facts {
            match fact {
                // Some servers number chunks that hold nothing.
                Fact::Output(_, bytes) if bytes.is_empty() => inside.journal.skip(),
                Fact::Output(stream, bytes) => inside.journal.output(stream, bytes),
                // Nor do all of them tell everything once and in its order.
                Fact::Exited(_) if inside.journal.exit().is_some() => inside.journal.skip(),
                Fact::Exited(exit) => inside.journal.exited(exit),
                Fact::Closed => {
                    inside.journal.had_exited(UNKNOWN_EXIT);
                    inside.journal.close(End::Whole);
                }
            }
        }
        let room = inside.journal.has_room();
        self.announce(inside);
        room
    }

    /// Nothing more will be heard of the process.
    pub(crate) fn fail(&self, error: Error) {
        let mut inside = self.inside();
        if inside.failure.is_none() && !inside.journal.is_closed() {
            inside.failure = Some(error);
            self.announce(inside);
        }
    }

    fn announce(&self, mut inside: MutexGuard<'_, Inside>) {
        let last = inside.journal.next_seq().previous();
        let wakers = inside.readers.wakers();
        drop(inside);
        self.last.send_replace(last.0);
        for waker in wakers {
            waker.wake();
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.inside().journal.has_room()
    }

    /// Whether what nobody has taken is more than so many windows.
    pub(crate) fn is_ahead_by(&self, windows: usize) -> bool {
        let most = self.limits.window_bytes.saturating_mul(windows);
        let chunks = self.limits.retain_chunks.saturating_mul(windows);
        let (bytes, count) = self.inside().journal.ahead();
        bytes > most as u64 || count > chunks
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.inside().journal.exit()
    }

    /// Whether nothing will be published any more.
    pub(crate) fn is_over(&self) -> bool {
        let inside = self.inside();
        inside.journal.is_closed() || inside.failure.is_some()
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.inside().failure.clone()
    }

    pub(crate) fn wake(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Output behind a cursor, and the state.
    pub(crate) fn page(&self, after: Seq, max_bytes: Option<usize>) -> Page {
        let mut page = None;
        self.move_readers(|inside| {
            inside.readers.polled(after);
            let found = inside.journal.page(after, max_bytes);
            page = Some(Page {
                chunks: found.chunks.into_iter().map(Into::into).collect(),
                next_seq: found.next_seq.0,
                exit: found.exit,
                closed: found.closed,
                failure: inside.failure.as_ref().map(ToString::to_string),
            });
        });
        page.unwrap_or_else(|| unreachable!("it was filled just now"))
    }

    /// Whether somebody who polls at this cursor has something to hear.
    pub(crate) fn has_news_for(&self, after: Seq) -> bool {
        let inside = self.inside();
        inside.failure.is_some() || inside.journal.has_news_for(after)
    }

    /// A new reader behind a cursor.
    pub(crate) fn join(&self, after: Seq) -> u64 {
        let mut key = 0;
        self.move_readers(|inside| key = inside.readers.join(after));
        key
    }

    pub(crate) fn leave(&self, key: u64) {
        self.move_readers(|inside| inside.readers.leave(key));
    }

    /// Nobody will read who hasn't begun to.
    pub(crate) fn expect_nobody(&self) {
        self.move_readers(|inside| inside.readers.expect_nobody());
    }

    /// Nobody is left who could read.
    pub(crate) fn abandon(&self) {
        self.move_readers(|inside| inside.readers.abandon());
    }

    /// The next events for a reader that has had everything up to `delivered`;
    /// an empty batch that is ready is the end.
    pub(crate) fn poll_events(
        &self,
        key: u64,
        delivered: Seq,
        batch: &mut VecDeque<Event>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let mut ready = true;
        self.move_readers(|inside| {
            inside.readers.advance(key, delivered);
            inside.take(delivered, batch);
            ready = !batch.is_empty() || inside.is_all(delivered);
            if !ready {
                inside.readers.wake_at_news(key, cx.waker());
            }
        });
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Changes who reads, and tells the source if that makes room.
    fn move_readers(&self, change: impl FnOnce(&mut Inside)) {
        let mut inside = self.inside();
        let had_room = inside.journal.has_room();
        change(&mut inside);
        inside.settle();
        let makes_room = !had_room && inside.journal.has_room();
        drop(inside);
        if makes_room {
            self.source.room();
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Holds the journal to the floor.
    fn settle(&mut self) {
        match self.readers.floor() {
            None => self.journal.detach(),
            Some(floor) => {
                let owner = self.journal.owner();
                if owner.is_attached() && owner.cursor() <= floor {
                    self.journal.advance(floor);
                } else {
                    self.journal.attach(floor);
                }
            }
        }
    }

    fn take(&self, after: Seq, batch: &mut VecDeque<Event>) {
        let mut bytes = 0;
        for event in self.journal.events_after(after) {
            if let outpost_journal::Event::Output(chunk) = &event {
                bytes += chunk.bytes.len();
            }
            batch.push_back(event.into());
            if bytes >= BATCH_BYTES {
                return;
            }
        }
        if let Some(failure) = &self.failure {
            let message = failure.to_string();
            batch.push_back(Event::Failed { message });
        }
    }

    /// Whether a reader that has come so far has had everything there will be.
    fn is_all(&self, delivered: Seq) -> bool {
        self.journal.is_closed() && !self.journal.has_after(delivered)
    }
}
