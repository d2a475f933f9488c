//! The engine with real processes, without a transport.

mod delivery;
mod kept_output;
mod owner;
mod peer_limits;
mod private;
mod sandboxed;
mod sessions;
mod shell_snapshots;
mod writes;
