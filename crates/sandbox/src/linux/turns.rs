//! Turns at a limited resource, round robin by client.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Grants a fixed number of turns at a time. Clients with waiting requests are served in rotation, so
/// that a client with many requests delays others by one request at most. Clones share the turns.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Also held by each [`Turn`].
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Clients with waiting requests, next one first.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
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
    pub(super) async fn take(&self, client: usize) -> Turn {
        let receiver = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return self.turn();
            }
            state.remove_given_up();
            let (sender, receiver) = oneshot::channel();
            let found = state
                .waiting
                .iter_mut()
                .find(|waiting| waiting.client == client);
            match found {
                Some(waiting) => waiting.requests.push_back(sender),
                None => state.waiting.push_back(Waiting {
                    client,
                    requests: VecDeque::from([sender]),
                }),
            }
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
        while let Some(mut next) = state.waiting.pop_front() {
            let request = next.requests.pop_front();
            if !next.requests.is_empty() {
                state.waiting.push_back(next);
            }
            match request.map(|request| request.send(self.turn())) {
                Some(Ok(())) => return,
                // The request was given up.
                Some(Err(mut turn)) => turn.turns = None,
                None => {}
            }
        }
        state.free += 1;
    }
}

impl State {
    /// Forgets requests that were given up, which would otherwise accumulate until a turn is free.
    fn remove_given_up(&mut self) {
        self.waiting.retain_mut(|waiting| {
            waiting.requests.retain(|request| !request.is_closed());
            !waiting.requests.is_empty()
        });
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

    #[tokio::test]
    async fn clients_take_turns() {
        let turns = Turns::new(1);
        let first = turns.take(1).await;
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for (client, request) in [(1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (2, 'e'), (3, 'f')] {
            let (turns, served) = (turns.clone(), Arc::clone(&served));
            tasks.spawn(async move {
                let turn = turns.take(client).await;
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
    async fn request_that_is_given_up_takes_no_turn() {
        let turns = Turns::new(1);
        let first = turns.take(1).await;
        let given_up = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take(2).await }
        });
        tokio::task::yield_now().await;
        given_up.abort();
        assert!(given_up.await.is_err());
        drop(first);
        drop(turns.take(3).await);
        assert_eq!(turns.state.lock().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_given_up_do_not_accumulate() {
        let turns = Turns::new(1);
        let _first = turns.take(1).await;
        for client in [1, 1, 2, 3, 3] {
            let limit = std::time::Duration::from_secs(1);
            let waited = tokio::time::timeout(limit, turns.take(client)).await;
            assert!(waited.is_err());
        }
        let state = turns.state.lock();
        let requests = state.waiting.iter().map(|waiting| waiting.requests.len());
        assert_eq!(requests.collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn turn_of_a_request_given_up_after_the_grant_is_passed_on() {
        let turns = Turns::new(1);
        let first = turns.take(1).await;
        let mut waiting = Box::pin(turns.take(2));
        let polled = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(waiting.as_mut().poll(cx).is_pending())
        });
        assert!(polled.await);
        drop(first);
        drop(waiting);
        assert_eq!(turns.state.lock().free, 1);
    }
}
