//! Servers over streamable HTTP, spoken to from wherever a place is.
//!
//! - [`endpoint`] makes what is configured into what is sent
//! - [`client`] makes the requests of the SDK through a place, so that there is
//!   no way around it to the network
//! - [`events`] bounds what comes in a stream of events
//! - [`redirect`] says where a server may point to
//! - [`transport`] puts it together

mod client;
mod endpoint;
mod events;
mod redirect;
mod transport;

pub use endpoint::EndpointError;
pub(crate) use transport::WebTransport;
