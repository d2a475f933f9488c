//! `http/request`: a request that this machine makes for a client.
//!
//! - [`request`] is the verb: it turns params into a request and its response into an answer
//! - [`exchanges`] is what a connection has under way, bounded, and the names of its streams
//! - [`body`] is a body on its way to the client, one more that takes turns on the wire;
//!   [`backlog`] is what of it is here, and decides when there is room for more
//!
//! All of it belongs to the connection and ends with it.

mod backlog;
mod body;
mod exchanges;
mod request;

pub(crate) use exchanges::Exchanges;
pub(crate) use request::{acknowledge, cancel, request};
