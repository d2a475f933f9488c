//! The engine with real processes, without a transport.

mod delivery;
mod kept_output;
mod owner;
mod private;
mod sandboxed;
mod sessions;
mod shares;
mod shell_snapshots;
mod writes;
