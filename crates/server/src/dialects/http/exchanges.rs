//! The HTTP requests in progress of a connection.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::body::BodyFeed;

/// The requests in progress of a connection. Clones share the same state. The task of a request holds
/// its permit and, if its body is streamed, its [`StreamId`].
#[derive(Clone)]
pub(crate) struct Exchanges {
    /// One permit for each request.
    permits: Arc<Semaphore>,
    /// One permit for a large body that is collected in memory.
    large: Arc<Semaphore>,
    streams: Arc<Mutex<HashMap<String, Stream>>>,
    buffered: Arc<Mutex<BufferedRequests>>,
}

/// The requests with a response in one message, by internal number: their ids need not be unique.
#[derive(Default)]
struct BufferedRequests {
    last: u64,
    in_progress: HashMap<u64, (String, CancellationToken)>,
}

/// A streamed request.
struct Stream {
    /// Dangling until the response has arrived.
    body: Weak<BodyFeed>,
    /// Cancelled by the client.
    cancelled: CancellationToken,
}

/// The id of a stream, in use until this is dropped.
pub(super) struct StreamId {
    id: String,
    cancelled: CancellationToken,
    streams: Arc<Mutex<HashMap<String, Stream>>>,
}

/// A request with a response in one message, registered until this is dropped.
pub(super) struct BufferedRequestGuard {
    number: u64,
    cancelled: CancellationToken,
    buffered: Arc<Mutex<BufferedRequests>>,
}

impl Exchanges {
    /// Allows `limit` requests at once.
    pub(crate) fn new(limit: usize) -> Self {
        Exchanges {
            permits: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            large: Arc::new(Semaphore::new(1)),
            streams: Arc::default(),
            buffered: Arc::default(),
        }
    }

    /// A permit for another request, if the limit allows it.
    pub(super) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Waits for the permit of a large body.
    pub(super) async fn large_permit(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.large).acquire_owned().await {
            Ok(permit) => permit,
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    /// Whether a stream has this id.
    pub(super) fn is_streamed(&self, id: &str) -> bool {
        self.streams.lock().contains_key(id)
    }

    /// Registers a stream; none if another one has this id.
    pub(super) fn register_stream(&self, id: String) -> Option<StreamId> {
        match self.streams.lock().entry(id) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                let cancelled = CancellationToken::new();
                let id = vacant.key().clone();
                vacant.insert(Stream {
                    body: Weak::new(),
                    cancelled: cancelled.clone(),
                });
                Some(StreamId {
                    id,
                    cancelled,
                    streams: Arc::clone(&self.streams),
                })
            }
        }
    }

    /// Registers a request with a response in one message.
    pub(super) fn register_buffered(&self, id: String) -> BufferedRequestGuard {
        let cancelled = CancellationToken::new();
        let mut buffered = self.buffered.lock();
        buffered.last += 1;
        let number = buffered.last;
        buffered.in_progress.insert(number, (id, cancelled.clone()));
        BufferedRequestGuard {
            number,
            cancelled,
            buffered: Arc::clone(&self.buffered),
        }
    }

    /// Sets the body of a stream, so that acknowledgements reach it.
    pub(super) fn set_body(&self, id: &str, body: &Arc<BodyFeed>) {
        if let Some(stream) = self.streams.lock().get_mut(id) {
            stream.body = Arc::downgrade(body);
        }
    }

    /// The body of a stream.
    pub(super) fn body(&self, id: &str) -> Option<Arc<BodyFeed>> {
        self.streams.lock().get(id)?.body.upgrade()
    }

    /// Cancels the requests with this id.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(stream) = self.streams.lock().get(id) {
            stream.cancelled.cancel();
        }
        for (known, cancelled) in self.buffered.lock().in_progress.values() {
            if known == id {
                cancelled.cancel();
            }
        }
    }
}

impl StreamId {
    pub(super) fn as_str(&self) -> &str {
        &self.id
    }

    /// Cancelled by the client.
    pub(super) fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

impl Drop for StreamId {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
    }
}

impl BufferedRequestGuard {
    /// Cancelled by the client.
    pub(super) fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

impl Drop for BufferedRequestGuard {
    fn drop(&mut self) {
        self.buffered.lock().in_progress.remove(&self.number);
    }
}
