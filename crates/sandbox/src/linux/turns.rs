//! Turns at a limited resource, round robin by peer and client.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A request for a turn: its peer, and the client among those of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnKey {
    /// Identifies the peer.
    pub peer: u64,
    /// Identifies the client.
    pub client: usize,
}

/// Grants a fixed number of turns at a time. Peers with waiting requests are served in rotation, and so are
/// the clients of each, so that many requests of one delay others by one request at most. Clones share the
/// turns.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Also held by each [`Turn`].
    state: Arc<Mutex<State>>,
}

/// The free turns and the waiting requests.
#[derive(Debug)]
struct State {
    free: usize,
    /// Peers with waiting requests, next one first.
    waiting: VecDeque<WaitingPeer>,
}

/// A peer with waiting requests.
#[derive(Debug)]
struct WaitingPeer {
    peer: u64,
    /// Clients with waiting requests, next one first.
    clients: VecDeque<WaitingClient>,
}

/// A client with waiting requests.
#[derive(Debug)]
struct WaitingClient {
    client: usize,
    /// One sender per request. Its receiver is dropped if the request is given up.
    requests: VecDeque<oneshot::Sender<Turn>>,
}

/// A turn, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    /// `None` if the turn was passed on.
    turns: Option<Turns>,
}

impl Turns {
    pub(super) fn new(count: usize) -> Self {
        let (free, waiting) = (count, VecDeque::new());
        Turns {
            state: Arc::new(Mutex::new(State { free, waiting })),
        }
    }

    /// Waits for a turn. Cancel safe.
    pub(super) async fn take(&self, key: TurnKey) -> Turn {
        let receiver = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return self.turn();
            }
            state.remove_given_up();
            let (sender, receiver) = oneshot::channel();
            state.push(key, sender);
            receiver
        };
        match receiver.await {
            Ok(turn) => turn,
            Err(_) => unreachable!("a request that waits is only removed with a turn"),
        }
    }

    fn turn(&self) -> Turn {
        let turns = Some(self.clone());
        Turn { turns }
    }

    /// Passes a turn to the next client, or frees it.
    fn pass_on(&self) {
        let mut state = self.state.lock();
        while let Some(request) = state.pop() {
            match request.send(self.turn()) {
                Ok(()) => return,
                // The request was given up.
                Err(mut turn) => turn.turns = None,
            }
        }
        state.free += 1;
    }
}

impl State {
    /// Forgets requests that were given up, which would otherwise accumulate until a turn is free.
    fn remove_given_up(&mut self) {
        self.waiting.retain_mut(|peer| {
            peer.clients.retain_mut(|client| {
                client.requests.retain(|request| !request.is_closed());
                !client.requests.is_empty()
            });
            !peer.clients.is_empty()
        });
    }

    fn push(&mut self, key: TurnKey, request: oneshot::Sender<Turn>) {
        let found = self.waiting.iter().position(|peer| peer.peer == key.peer);
        let at = found.unwrap_or_else(|| {
            self.waiting.push_back(WaitingPeer {
                peer: key.peer,
                clients: VecDeque::new(),
            });
            self.waiting.len() - 1
        });
        let clients = &mut self.waiting[at].clients;
        match clients.iter_mut().find(|one| one.client == key.client) {
            Some(client) => client.requests.push_back(request),
            None => clients.push_back(WaitingClient {
                client: key.client,
                requests: VecDeque::from([request]),
            }),
        }
    }

    /// Takes the next request: of the next peer, and of its next client. Both go to the end of their queue.
    fn pop(&mut self) -> Option<oneshot::Sender<Turn>> {
        let mut peer = self.waiting.pop_front()?;
        let mut client = peer.clients.pop_front()?;
        let request = client.requests.pop_front();
        if !client.requests.is_empty() {
            peer.clients.push_back(client);
        }
        if !peer.clients.is_empty() {
            self.waiting.push_back(peer);
        }
        request
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that is the only one of its peer.
    fn key(client: usize) -> TurnKey {
        TurnKey {
            peer: client as u64,
            client,
        }
    }

    #[tokio::test]
    async fn clients_take_turns() {
        let turns = Turns::new(1);
        let first = turns.take(key(1)).await;
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for (client, request) in [(1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (2, 'e'), (3, 'f')] {
            let (turns, served) = (turns.clone(), Arc::clone(&served));
            tasks.spawn(async move {
                let turn = turns.take(key(client)).await;
                served.lock().push(request);
                drop(turn);
            });
        }
        // All of them wait.
        tokio::task::yield_now().await;
        assert!(served.lock().is_empty());
        drop(first);
        tasks.join_all().await;
        assert_eq!(served.lock().iter().collect::<String>(), "adfbec");
        assert_eq!(turns.state.lock().free, 1);
    }

    #[tokio::test]
    async fn peer_with_many_clients_gets_no_more_turns() {
        let turns = Turns::new(1);
        let first = turns.take(key(1)).await;
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        let requests = [
            (1, 1, 'a'),
            (1, 2, 'b'),
            (1, 1, 'c'),
            (1, 3, 'd'),
            (2, 9, 'e'),
            (2, 9, 'f'),
        ];
        for (peer, client, request) in requests {
            let (turns, served) = (turns.clone(), Arc::clone(&served));
            tasks.spawn(async move {
                let turn = turns.take(TurnKey { peer, client }).await;
                served.lock().push(request);
                drop(turn);
            });
        }
        tokio::task::yield_now().await;
        drop(first);
        tasks.join_all().await;
        assert_eq!(served.lock().iter().collect::<String>(), "aebfdc");
        assert_eq!(turns.state.lock().free, 1);
    }

    #[tokio::test]
    async fn request_that_is_given_up_takes_no_turn() {
        let turns = Turns::new(1);
        let first = turns.take(key(1)).await;
        let given_up = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take(key(2)).await }
        });
        tokio::task::yield_now().await;
        given_up.abort();
        assert!(given_up.await.is_err());
        drop(first);
        drop(turns.take(key(3)).await);
        assert_eq!(turns.state.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_given_up_do_not_accumulate() {
        let turns = Turns::new(1);
        let _first = turns.take(key(1)).await;
        for client in [1, 1, 2, 3, 3] {
            let limit = std::time::Duration::from_secs(1);
            let waited = tokio::time::timeout(limit, turns.take(key(client))).await;
            assert!(waited.is_err());
        }
        let state = turns.state.lock();
        let clients = state.waiting.iter().flat_map(|peer| &peer.clients);
        let requests = clients.map(|client| client.requests.len());
        assert_eq!(requests.collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn cancelled_request_releases_its_turn() {
        let turns = Turns::new(1);
        let first = turns.take(key(1)).await;
        let mut waiting = Box::pin(turns.take(key(2)));
        let polled = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(waiting.as_mut().poll(cx).is_pending())
        });
        assert!(polled.await);
        drop(first);
        drop(waiting);
        assert_eq!(turns.state.lock().free, 1);
    }
}
