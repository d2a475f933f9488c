//! The HTTP requests that a connection has under way.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::body::BodyFeed;

/// What a connection has under way; clones name the same. Whoever serves a request holds its place
/// and, if its body is streamed, its name.
#[derive(Clone)]
pub(crate) struct Exchanges {
    /// A place for each request.
    places: Arc<Semaphore>,
    /// The place of the one large body that may be gathered at a time.
    large: Arc<Semaphore>,
    streams: Arc<Mutex<HashMap<String, Stream>>>,
    wholes: Arc<Mutex<Wholes>>,
}

/// The requests whose responses come in one piece, by their numbers here: what their clients call
/// them needn't differ.
#[derive(Default)]
struct Wholes {
    last: u64,
    under_way: HashMap<u64, (String, CancellationToken)>,
}

/// A streamed request.
struct Stream {
    /// None until its response has come.
    body: Weak<BodyFeed>,
    /// Cancelled when the client wants no more of it.
    unwanted: CancellationToken,
}

/// The name of a stream, in use until this is dropped.
pub(super) struct StreamName {
    name: String,
    unwanted: CancellationToken,
    streams: Arc<Mutex<HashMap<String, Stream>>>,
}

/// A request whose response comes in one piece, known until this is dropped.
pub(super) struct Whole {
    number: u64,
    unwanted: CancellationToken,
    wholes: Arc<Mutex<Wholes>>,
}

impl Exchanges {
    /// None yet, and so many at once.
    pub(crate) fn new(most: usize) -> Self {
        Exchanges {
            places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            large: Arc::new(Semaphore::new(1)),
            streams: Arc::default(),
            wholes: Arc::default(),
        }
    }

    /// A place for one more, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for the place of a large body.
    pub(super) async fn large(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.large).acquire_owned().await {
            Ok(place) => place,
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    /// Whether a stream has this name.
    pub(super) fn is_streamed(&self, name: &str) -> bool {
        lock(&self.streams).contains_key(name)
    }

    /// Takes a name for a stream, if no other has it.
    pub(super) fn name(&self, name: String) -> Option<StreamName> {
        match lock(&self.streams).entry(name) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                let unwanted = CancellationToken::new();
                let name = vacant.key().clone();
                vacant.insert(Stream {
                    body: Weak::new(),
                    unwanted: unwanted.clone(),
                });
                Some(StreamName {
                    name,
                    unwanted,
                    streams: Arc::clone(&self.streams),
                })
            }
        }
    }

    /// One more whose response comes in one piece.
    pub(super) fn whole(&self, name: String) -> Whole {
        let unwanted = CancellationToken::new();
        let mut wholes = lock(&self.wholes);
        wholes.last += 1;
        let number = wholes.last;
        wholes.under_way.insert(number, (name, unwanted.clone()));
        Whole {
            number,
            unwanted,
            wholes: Arc::clone(&self.wholes),
        }
    }

    /// The response has come; what is said about its body from now on reaches it.
    pub(super) fn streams(&self, name: &str, body: &Arc<BodyFeed>) {
        if let Some(stream) = lock(&self.streams).get_mut(name) {
            stream.body = Arc::downgrade(body);
        }
    }

    /// The body that is streamed under a name.
    pub(super) fn body(&self, name: &str) -> Option<Arc<BodyFeed>> {
        lock(&self.streams).get(name)?.body.upgrade()
    }

    /// Nobody wants what was asked for under a name.
    pub(super) fn cancel(&self, name: &str) {
        if let Some(stream) = lock(&self.streams).get(name) {
            stream.unwanted.cancel();
        }
        for (known, unwanted) in lock(&self.wholes).under_way.values() {
            if known == name {
                unwanted.cancel();
            }
        }
    }
}

impl StreamName {
    pub(super) fn as_str(&self) -> &str {
        &self.name
    }

    /// Cancelled when the client wants no more of it.
    pub(super) fn unwanted(&self) -> CancellationToken {
        self.unwanted.clone()
    }
}

impl Drop for StreamName {
    fn drop(&mut self) {
        lock(&self.streams).remove(&self.name);
    }
}

impl Whole {
    /// Cancelled when the client doesn't want it any more.
    pub(super) fn unwanted(&self) -> CancellationToken {
        self.unwanted.clone()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        lock(&self.wholes).under_way.remove(&self.number);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
