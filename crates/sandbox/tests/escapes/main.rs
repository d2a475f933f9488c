//! Attempts to get out, each first shown to work without the sandbox.
//!
//! They go through the real stages with a plan of their own. What takes a server is tested with the
//! built binary.

mod calls;
mod cell;
mod files;
mod sockets;
mod walls;
