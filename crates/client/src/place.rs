//! A place where processes run.

use std::pin::Pin;

use outpost_protocol::{ProcessEntry, Surroundings};

use crate::{Error, Files, HttpRequest, HttpResponse, Process, Start};

/// What a place is asked for, on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A place where processes run: this program ([`Local`](crate::Local)), or a
/// server ([`Remote`](crate::Remote)). Whoever holds one can't tell which.
pub trait Place: Send + Sync {
    /// Starts a process; resolves once it runs. Dropping the future undoes the
    /// start, whatever has become of it.
    fn start(&self, start: Start) -> Pending<'_, Process>;

    /// A handle on a process that exists already, whose events are replayed
    /// from just after `after_seq` as far as they are retained; 0 is the
    /// beginning. A process that was found this way isn't terminated with its
    /// last handle.
    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process>;

    /// All processes of the place that are known to it, oldest first.
    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>>;

    /// What it is like there, as far as the place says.
    fn environment(&self) -> Pending<'_, Surroundings>;

    /// Its files. Who has them keeps the place, as a process does.
    fn files(&self) -> Files;

    /// Makes an HTTP request from there; resolves when the head of the response
    /// has come, and dropping the future gives it up. Its connections, proxies
    /// and variables are those of the place.
    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse>;

    /// Leaves the place in good order. A local place ends everything it runs; a
    /// remote one is disconnected from, and what nobody ended goes on there for
    /// as long as its session lasts. Every later call fails.
    fn close(&self) -> Pending<'_, ()>;
}
