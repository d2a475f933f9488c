//! Bodies that are on their way over a connection.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use outpost_protocol::HttpBodyDelta;

use super::core::lock;
use crate::Error;

/// The bodies of one connection, by the names of their requests. They end with it.
#[derive(Default)]
pub(super) struct Bodies {
    arriving: Mutex<HashMap<String, Arc<Arriving>>>,
}

impl Bodies {
    /// Listens to a body from now on, of which so many bytes may wait for their reader.
    pub(super) fn expect(&self, name: &str, most: usize) -> Arc<Arriving> {
        let arriving = Arc::new(Arriving {
            state: Mutex::new(State {
                pile: Pile::new(most),
                waker: None,
            }),
        });
        lock(&self.arriving).insert(name.to_owned(), Arc::clone(&arriving));
        arriving
    }

    /// Nobody listens to it any more.
    pub(super) fn forget(&self, name: &str) {
        lock(&self.arriving).remove(name);
    }

    /// A piece has come.
    pub(super) fn heard(&self, delta: HttpBodyDelta<'_>) {
        let known = lock(&self.arriving).get(&*delta.request_id).cloned();
        // Who has stopped listening doesn't want it.
        if let Some(arriving) = known {
            arriving.change(|pile| pile.add(delta));
        }
    }

    /// The connection is lost, and nobody can take a body up again.
    pub(super) fn lose(&self, error: &Error) {
        for (_, arriving) in lock(&self.arriving).drain() {
            arriving.change(|pile| pile.fail(error.clone()));
        }
    }
}

/// One body, between the reader of the connection and the reader of the body.
pub(super) struct Arriving {
    state: Mutex<State>,
}

struct State {
    pile: Pile,
    /// Whoever waits for more.
    waker: Option<Waker>,
}

impl Arriving {
    /// The next piece and its number; none behind the last.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        let mut state = lock(&self.state);
        let next = state.pile.take();
        if next.is_pending() {
            state.waker = Some(cx.waker().clone());
        }
        next
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).pile.end.is_some()
    }

    fn change(&self, change: impl FnOnce(&mut Pile)) {
        let waker = {
            let mut state = lock(&self.state);
            change(&mut state.pile);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What has come of a body and wasn't taken. Pure.
struct Pile {
    pieces: VecDeque<(u64, Bytes)>,
    bytes: usize,
    most: usize,
    last_seq: u64,
    end: Option<Result<(), Error>>,
}

impl Pile {
    fn new(most: usize) -> Self {
        Pile {
            pieces: VecDeque::new(),
            bytes: 0,
            most,
            last_seq: 0,
            end: None,
        }
    }

    fn add(&mut self, delta: HttpBodyDelta<'_>) {
        if self.end.is_some() {
            return;
        }
        if delta.seq != self.last_seq + 1 {
            let (expected, seq) = (self.last_seq + 1, delta.seq);
            return self.fail(Error::BodyGap { expected, seq });
        }
        self.last_seq = delta.seq;
        let bytes = Bytes::from(delta.delta_base64.into_owned());
        self.bytes += bytes.len();
        if self.bytes > self.most {
            // A server that doesn't wait for its readers; what is here is still theirs.
            return self.fail(Error::BodyTooLarge { most: self.most });
        }
        if !bytes.is_empty() {
            self.pieces.push_back((delta.seq, bytes));
        }
        match delta.error {
            Some(message) => self.fail(Error::BodyFailed { message }),
            None if delta.done => self.end = Some(Ok(())),
            None => {}
        }
    }

    fn fail(&mut self, error: Error) {
        self.end.get_or_insert(Err(error));
    }

    fn take(&mut self) -> Poll<Option<Result<(u64, Bytes), Error>>> {
        if let Some((seq, bytes)) = self.pieces.pop_front() {
            self.bytes -= bytes.len();
            return Poll::Ready(Some(Ok((seq, bytes))));
        }
        match &mut self.end {
            None => Poll::Pending,
            Some(end) => match std::mem::replace(end, Ok(())) {
                Ok(()) => Poll::Ready(None),
                Err(error) => Poll::Ready(Some(Err(error))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(seq: u64, bytes: &'static [u8]) -> HttpBodyDelta<'static> {
        HttpBodyDelta {
            request_id: "r".into(),
            seq,
            delta_base64: bytes.into(),
            done: false,
            error: None,
        }
    }

    /// Everything until the pile has no more to say.
    fn told(pile: &mut Pile) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            match pile.take() {
                Poll::Pending => return told,
                Poll::Ready(None) => {
                    told.push("end".to_owned());
                    return told;
                }
                Poll::Ready(Some(Ok((seq, bytes)))) => told.push(format!("{seq} {bytes:?}")),
                Poll::Ready(Some(Err(error))) => told.push(error.to_string()),
            }
        }
    }

    #[test]
    fn pieces_come_in_order_and_then_the_end() {
        let mut pile = Pile::new(10);
        pile.add(delta(1, b"a"));
        pile.add(delta(2, b"bc"));
        assert_eq!(told(&mut pile), [r#"1 b"a""#, r#"2 b"bc""#]);
        pile.add(HttpBodyDelta {
            done: true,
            ..delta(3, b"")
        });
        assert_eq!(told(&mut pile), ["end"]);
        assert_eq!(told(&mut pile), ["end"]);
    }

    #[test]
    fn a_failure_comes_behind_what_came_before_it() {
        let mut pile = Pile::new(10);
        pile.add(delta(1, b"a"));
        pile.add(HttpBodyDelta {
            done: true,
            error: Some("it broke".to_owned()),
            ..delta(2, b"")
        });
        let words = "the response is incomplete: it broke";
        assert_eq!(told(&mut pile), [r#"1 b"a""#, words, "end"]);
    }

    #[test]
    fn a_hole_is_a_failure() {
        let mut pile = Pile::new(10);
        pile.add(delta(1, b"a"));
        pile.add(delta(3, b"c"));
        pile.add(delta(2, b"b"));
        let words = "the response is incomplete: piece 3 came where 2 was expected";
        assert_eq!(told(&mut pile), [r#"1 b"a""#, words, "end"]);
    }

    #[test]
    fn a_server_that_waits_for_nobody_cannot_fill_our_memory() {
        let mut pile = Pile::new(3);
        pile.add(delta(1, b"abc"));
        pile.add(delta(2, b"d"));
        pile.add(delta(3, b"e"));
        let words = "the body is larger than 3 bytes";
        assert_eq!(told(&mut pile), [r#"1 b"abc""#, words, "end"]);
    }
}
