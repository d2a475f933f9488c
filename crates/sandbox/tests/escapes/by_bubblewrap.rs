//! The same attempts as in `escapes`, on a host where bubblewrap has to do the mounts.

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
const MOUNTER: outpost_sandbox::Mounter = outpost_sandbox::Mounter::Bubblewrap;
