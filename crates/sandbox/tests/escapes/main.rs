//! Attempts to get out, each first shown to work without the sandbox.
//!
//! They go through the real stages with a plan of their own. What takes a server is tested with the
//! built binary. Here it is the stage that mounts; `by_bubblewrap` are the same attempts where it
//! can't.

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

/// Who mounts what these attempts find.
const MOUNTER: outpost_sandbox::Mounter = outpost_sandbox::Mounter::Stage;
