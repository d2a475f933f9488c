//! The events of a process as a stream.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use outpost_journal::Seq;

use super::Process;
use crate::Event;

/// The events of a process, in order. It is a handle on the process, too.
///
/// The process is held back while this lags by more than a window.
#[derive(Debug)]
pub struct Events {
    process: Process,
    key: u64,
    /// Taken over, and not given out yet.
    batch: VecDeque<Event>,
    delivered: Seq,
    ended: bool,
}

impl Events {
    pub(super) fn new(process: Process, after: Seq) -> Self {
        let key = process.handle.record.join(after);
        Events {
            process,
            key,
            batch: VecDeque::new(),
            delivered: after,
            ended: false,
        }
    }

    /// The next event; `None` behind the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The number of the last event that was given out.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.delivered.0
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if this.batch.is_empty() {
            let record = &this.process.handle.record;
            if record
                .poll_events(this.key, this.delivered, &mut this.batch, cx)
                .is_pending()
            {
                return Poll::Pending;
            }
        }
        let event = this.batch.pop_front();
        match &event {
            Some(Event::Output { seq, .. } | Event::Exited { seq, .. }) => {
                this.delivered = Seq(*seq);
            }
            Some(Event::Closed { seq }) => {
                this.delivered = Seq(*seq);
                this.ended = true;
            }
            Some(Event::Failed { .. }) | None => this.ended = true,
        }
        if this.ended {
            this.process.handle.record.leave(this.key);
        }
        Poll::Ready(event)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.process.handle.record.leave(self.key);
    }
}
