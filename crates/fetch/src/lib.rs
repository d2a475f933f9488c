//! HTTP requests made from this host.
//!
//! - [`Request`]: a request, checked while it is built ([`RequestError`]) before anything is sent; the
//!   values of headers may come from environment variables
//! - [`Fetcher`]: sends requests and follows redirects by the rules of `redirect`; fails with a
//!   [`FetchError`]
//! - [`Response`]: the head of a response, with a [`Body`] that is read on demand, so that a slow
//!   reader exerts backpressure on the sender
//!
//! Bytes are passed on unchanged. Bodies are not decompressed, and compression is not requested.
//! Connections use the proxies of the system. Nothing is logged, and no error contains a path, a
//! query, a password or the value of a header.

mod error;
mod fetcher;
mod redirect;
mod request;
mod response;

pub use error::{Cause, FetchError, RequestError, UrlFault, VariableFault};
pub use fetcher::Fetcher;
pub use request::{RedirectObserver, Request};
pub use response::{Body, Response};
