//! Blocks that were asked for.

use std::{
    collections::VecDeque,
    task::{Context, Poll},
};

use super::{Trouble, Working};

/// What was asked for, oldest first. All of it goes on whenever somebody looks,
/// so that a link's latency is waited for once and not for every block.
pub(super) struct UnderWay<T> {
    queue: VecDeque<Asked<T>>,
}

enum Asked<T> {
    Coming(Working<T>),
    Here(Result<T, Trouble>),
}

impl<T> UnderWay<T> {
    pub(super) fn new() -> Self {
        UnderWay {
            queue: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, work: Working<T>) {
        self.queue.push_back(Asked::Coming(work));
    }

    /// Nobody wants to know any more.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Moves all of it on; gives the oldest once that has come.
    pub(super) fn poll_oldest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Trouble>>> {
        for asked in &mut self.queue {
            if let Asked::Coming(work) = asked
                && let Poll::Ready(outcome) = work.as_mut().poll(cx)
            {
                *asked = Asked::Here(outcome);
            }
        }
        match self.queue.pop_front() {
            None => Poll::Ready(None),
            Some(Asked::Here(outcome)) => Poll::Ready(Some(outcome)),
            Some(coming) => {
                self.queue.push_front(coming);
                Poll::Pending
            }
        }
    }
}
