//! A queue of requests in flight.

use std::{
    collections::VecDeque,
    task::{Context, Poll},
};

use super::{BackendError, FileFuture};

/// Requests in flight, oldest first. Polling advances all of them, so that the latency of the
/// connection is paid once and not for every block.
pub(super) struct Pipeline<T> {
    queue: VecDeque<Request<T>>,
}

enum Request<T> {
    Pending(FileFuture<T>),
    Finished(Result<T, BackendError>),
}

impl<T> Pipeline<T> {
    pub(super) fn new() -> Self {
        Pipeline {
            queue: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, request: FileFuture<T>) {
        self.queue.push_back(Request::Pending(request));
    }

    /// Drops all requests.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Advances all requests. Returns the result of the oldest one once it is finished, and none if
    /// the queue is empty.
    pub(super) fn poll_oldest(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<T, BackendError>>> {
        for request in &mut self.queue {
            if let Request::Pending(future) = request
                && let Poll::Ready(result) = future.as_mut().poll(cx)
            {
                *request = Request::Finished(result);
            }
        }
        match self.queue.pop_front() {
            None => Poll::Ready(None),
            Some(Request::Finished(result)) => Poll::Ready(Some(result)),
            Some(pending) => {
                self.queue.push_front(pending);
                Poll::Pending
            }
        }
    }
}
