//! An HTTP request made from this machine.
//!
//! - [`Request`] is what is asked for, checked when it is put together: what is wrong with it
//!   ([`RequestError`]) is the asker's mistake, and nothing was sent
//! - `environment` is how a header gets a value that only this machine knows
//! - [`Fetcher`] makes requests and follows redirects, as far as `redirect` says that it goes on;
//!   what goes wrong on the way is a [`FetchError`]
//! - [`Response`] is the head of what came back, with a [`Body`] of which nothing is read that
//!   nobody asked for: who doesn't read it holds the other end back
//!
//! Bytes are handed on as they were sent: nothing is decompressed, and nothing that could be is
//! asked for. Connections go through the proxies of the system. Nothing here is logged, and no
//! error tells a path, a query, a password or the value of a header.

mod environment;
mod error;
mod fetcher;
mod redirect;
mod request;
mod response;
mod tls;

pub use environment::is_protected;
pub use error::{Cause, FetchError, RequestError, UrlFault};
pub use fetcher::Fetcher;
pub use request::{Redirects, Request};
pub use response::{Body, Response};
