//! Addresses to listen on, and bound listeners.

mod address;
mod listener;
mod unix_socket;

pub use address::{Listen, ParseListenError};
pub use listener::{ListenError, Listener};
