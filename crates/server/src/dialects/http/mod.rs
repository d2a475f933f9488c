//! `http/request`: HTTP requests that this host makes for a client.
//!
//! - [`request`]: makes the request and responds to the client
//! - [`exchanges`]: the requests in progress of a connection, and the ids of its streams
//! - [`body`]: streams a body to the client; [`backlog`]: buffers it with a bounded size
//!
//! All requests end with their connection.

mod backlog;
mod body;
mod exchanges;
mod request;

pub(crate) use exchanges::Exchanges;
pub(crate) use request::{acknowledge, cancel, request};
