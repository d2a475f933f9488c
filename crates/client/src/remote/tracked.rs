//! One process of the server, as it is known here.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use outpost_journal::{Limits, Seq};
use outpost_protocol::ReadResult;
use tokio::sync::watch;

use super::{
    core::Core,
    puzzle::{Heard, Hole, Puzzle},
};
use crate::{
    Error,
    event::Fact,
    process::Handle,
    record::{Record, Source},
};

/// How many windows a server may be ahead that should be ahead by one: its own
/// may be larger than ours.
const MAX_WINDOWS: usize = 64;

/// A process of the server.
pub(super) struct Tracked {
    pub(super) record: Arc<Record>,
    puzzle: Mutex<Puzzle>,
    /// What the clones of its public handle share, while there are any.
    handle: Mutex<Weak<Handle>>,
    /// Somebody is at reading what is missing.
    pub(super) reading: AtomicBool,
    /// What may be acknowledged: all that was published, as long as there is
    /// room for it.
    ackable: AtomicU64,
    /// It was, or is being, started here.
    started: bool,
    arrival: watch::Sender<Arrival>,
}

/// Whether a process is there at all.
#[derive(Clone, Debug)]
enum Arrival {
    /// A start or the first read of it is under way.
    Awaited,
    Here,
    Failed(Error),
}

/// What has come of something that was heard.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// What may be acknowledged now, and how many bytes of it are new.
    pub(super) ackable: Option<(Seq, usize)>,
    pub(super) closed: bool,
    /// Something is missing that has to be read.
    pub(super) wants: bool,
}

impl Tracked {
    /// A process that is about to be started.
    pub(super) fn new(core: &Arc<Core>, id: &str) -> Arc<Self> {
        let limits = core.record_limits();
        let puzzle = Puzzle::new(Seq::START, limits.window_bytes);
        Self::with(core, id, limits, puzzle, true)
    }

    /// A process that exists, behind a number; what is retained of it isn't
    /// known yet.
    pub(super) fn found(core: &Arc<Core>, id: &str, after: Seq) -> Arc<Self> {
        let limits = core.record_limits();
        let puzzle = Puzzle::adrift(after, limits.window_bytes);
        Self::with(core, id, limits, puzzle, false)
    }

    fn with(
        core: &Arc<Core>,
        id: &str,
        limits: Limits,
        puzzle: Puzzle,
        started: bool,
    ) -> Arc<Self> {
        let after = puzzle.next().previous();
        Arc::new_cyclic(|me| {
            let source = RoomAgain {
                core: Arc::downgrade(core),
                tracked: Weak::clone(me),
            };
            let record = Record::new(id.to_owned(), limits, after, Box::new(source));
            Tracked {
                record: Arc::new(record),
                puzzle: Mutex::new(puzzle),
                handle: Mutex::default(),
                reading: AtomicBool::new(false),
                ackable: AtomicU64::new(after.0),
                started,
                arrival: watch::Sender::new(Arrival::Awaited),
            }
        })
    }

    pub(super) fn id(&self) -> &str {
        self.record.id()
    }

    /// Whether it was, or is being, started here.
    pub(super) fn is_started_here(&self) -> bool {
        self.started
    }

    /// It is there: its start was accepted, or something was read of it.
    pub(super) fn arrived(&self) {
        self.arrives(Arrival::Here);
    }

    /// Nothing more will be heard of it.
    pub(super) fn fail(&self, error: Error) {
        self.record.fail(error.clone());
        self.arrives(Arrival::Failed(error));
    }

    fn arrives(&self, outcome: Arrival) {
        self.arrival.send_if_modified(|arrival| {
            let awaited = matches!(arrival, Arrival::Awaited);
            if awaited {
                *arrival = outcome;
            }
            awaited
        });
    }

    /// Whether it isn't known yet that it is there.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(*self.arrival.borrow(), Arrival::Awaited)
    }

    /// Waits until it is there, or isn't.
    pub(super) async fn arrival(&self) -> Result<(), Error> {
        let mut arrival = self.arrival.subscribe();
        let known = arrival
            .wait_for(|arrival| !matches!(arrival, Arrival::Awaited))
            .await;
        match known.as_deref() {
            Ok(Arrival::Failed(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether it is to end when nobody here wants it: it was started here, and
    /// nobody has detached it.
    pub(super) fn ends_with_us(&self) -> bool {
        match self.handle_slot().upgrade() {
            Some(handle) => !handle.is_detached(),
            // One that nobody holds any more was ended, or was meant to go on.
            None => self.started && self.is_awaited(),
        }
    }

    /// The handle there is, or a new one.
    pub(super) fn handle_or(&self, new: impl FnOnce() -> Arc<Handle>) -> Arc<Handle> {
        let mut slot = self.handle_slot();
        slot.upgrade().unwrap_or_else(|| {
            let handle = new();
            *slot = Arc::downgrade(&handle);
            handle
        })
    }

    pub(super) fn has_handle(&self) -> bool {
        self.handle_slot().strong_count() > 0
    }

    fn handle_slot(&self) -> MutexGuard<'_, Weak<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A notification has come. Where the server waits for acknowledgements
    /// there is always room: it sends no more than its window, whichever that is,
    /// and one that sends many of ours has none.
    pub(super) fn heard(&self, seq: Seq, heard: Heard, acked: bool) -> Result<Progress, Error> {
        let mut puzzle = self.puzzle();
        if acked && self.record.is_ahead_by(MAX_WINDOWS) {
            return Err(Error::ProcessFailed {
                id: self.id().to_owned(),
                message: "the server does not wait for acknowledgements".to_owned(),
            });
        }
        let room = acked || self.record.has_room();
        let mut facts = Vec::new();
        puzzle.offer(seq, heard, room, &mut facts);
        Ok(self.published(&puzzle, facts, room))
    }

    /// What was missing has been read.
    pub(super) fn page(&self, page: ReadResult<Vec<u8>>) -> Result<Progress, Error> {
        let numbers = page.chunks.iter().map(|chunk| chunk.seq);
        if numbers.chain([page.next_seq]).any(|seq| !is_sane(Seq(seq))) {
            return Err(Error::ProcessFailed {
                id: self.id().to_owned(),
                message: "the server gives its events numbers beyond all counting".to_owned(),
            });
        }
        let mut puzzle = self.puzzle();
        let adrift = puzzle.is_adrift();
        let mut facts = Vec::new();
        let outcome = puzzle.page(page, &mut facts);
        if adrift {
            let first = Seq(puzzle.next().0 - facts.len() as u64);
            let exit = puzzle.earlier_exit();
            self.record.begin_after(first.previous(), exit);
            self.ackable.store(first.previous().0, Ordering::Release);
        }
        let progress = self.published(&puzzle, facts, true);
        match outcome {
            Ok(()) => Ok(progress),
            Err(Hole { from, to }) => Err(Error::Gap {
                id: self.id().to_owned(),
                from: from.0,
                to: to.0,
            }),
        }
    }

    /// What is missing can't be read; says whether that can be lived with.
    pub(super) fn unreadable(&self) -> (Progress, bool) {
        let mut puzzle = self.puzzle();
        let mut facts = Vec::new();
        let fine = puzzle.settle_for_less(&mut facts);
        (self.published(&puzzle, facts, true), fine)
    }

    fn published(&self, puzzle: &Puzzle, facts: Vec<Fact>, room: bool) -> Progress {
        let mut progress = Progress {
            closed: puzzle.is_closed(),
            wants: room && puzzle.wants().is_some(),
            ackable: None,
        };
        if !facts.is_empty() {
            let bytes = facts.iter().map(size_of).sum();
            if self.record.publish(facts) || progress.closed {
                let last = puzzle.next().previous();
                self.ackable.store(last.0, Ordering::Release);
                progress.ackable = Some((last, bytes));
            }
        }
        progress
    }

    /// Where to read from, if something is missing.
    pub(super) fn wants(&self) -> Option<Seq> {
        self.puzzle().wants()
    }

    /// Where to read from now: something is missing, and there is room for it.
    pub(super) fn to_read(&self) -> Option<Seq> {
        let after = self.wants()?;
        (!self.record.is_over() && self.record.has_room()).then_some(after)
    }

    /// What the server has spoken of and doesn't have.
    pub(super) fn never_comes(&self) -> Error {
        let puzzle = self.puzzle();
        Error::Gap {
            id: self.id().to_owned(),
            from: puzzle.next().0,
            to: puzzle.heard().max(puzzle.next()).0,
        }
    }

    /// The last number that was published.
    pub(super) fn last(&self) -> Seq {
        self.puzzle().next().previous()
    }

    /// Where to go on after a resume where output is acknowledged. What was
    /// published beyond it comes again, and is dropped.
    pub(super) fn ackable(&self) -> Seq {
        Seq(self.ackable.load(Ordering::Acquire))
    }

    /// There is room again: everything that was published may be acknowledged.
    fn catch_up_acks(&self) -> Seq {
        let last = self.last();
        self.ackable.store(last.0, Ordering::Release);
        last
    }

    fn puzzle(&self) -> MutexGuard<'_, Puzzle> {
        self.puzzle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether anybody can have counted so far.
pub(super) fn is_sane(seq: Seq) -> bool {
    seq.0 <= u64::MAX / 2
}

fn size_of(fact: &Fact) -> usize {
    match fact {
        Fact::Output(_, bytes) => bytes.len(),
        Fact::Exited(_) | Fact::Closed => 0,
    }
}

/// Hears when a reader has made room.
struct RoomAgain {
    core: Weak<Core>,
    tracked: Weak<Tracked>,
}

impl Source for RoomAgain {
    fn room(&self) {
        let (Some(core), Some(tracked)) = (self.core.upgrade(), self.tracked.upgrade()) else {
            return;
        };
        if core.is_acked() {
            let last = tracked.catch_up_acks();
            core.acknowledge_now(tracked.id(), last);
        } else if tracked.wants().is_some() {
            core.read_what_is_missing(&tracked);
        }
    }
}
