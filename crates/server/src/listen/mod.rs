//! Addresses to listen on, and bound listeners.

mod address;
mod listener;

pub use address::{Listen, ParseListenError};
pub use listener::{ListenError, Listener};
