//! Listeners: addresses, TCP, unix sockets.

mod address;
mod error;
mod listener;
mod tcp;
mod unix;

pub use address::{Listen, ParseListenError};
pub use error::ListenError;
pub use listener::Listener;
