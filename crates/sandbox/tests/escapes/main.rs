//! Attempts to get out, each first shown to work without the sandbox.
//!
//! They go through the real stages with a plan of their own. What takes a server is tested with the
//! built binary.

mod alone;
mod calls;
mod cell;
mod closed;
mod devices;
mod files;
mod forged;
mod sockets;
mod swapped;
mod together;
mod walls;
