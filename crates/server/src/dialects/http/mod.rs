//! `http/request`: HTTP requests that this host makes for a client.
//!
//! - [`request`]: makes the request and responds; the requests in progress of a connection
//! - [`body`]: streams a body to the client; [`backlog`]: buffers it with a bounded size
//!
//! All requests end with their connection.

mod backlog;
mod body;
mod request;

pub(crate) use request::{Exchanges, request};
