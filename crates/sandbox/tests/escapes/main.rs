//! Escape attempts, each shown to succeed without the sandbox first.
//!
//! They use the real helper with a plan of their own, and the helper makes the mounts. The same attempts run
//! with mounts by bubblewrap in `bubblewrap_mounts`, and both as on a kernel without Landlock. Tests that need a server use the built binary.

mod closed_directories;
mod concurrent;
mod devices;
mod files;
mod fixture;
mod forged_marks;
mod hidden_libraries;
mod landlock;
mod landlock_only;
mod managed_network;
mod own_files;
mod passed_descriptors;
mod patterns;
mod planted_links;
mod properties;
mod replaced_paths;
mod sockets;
mod syscalls;
mod unix_sockets;

const MOUNTER: outpost_sandbox::Mounter = outpost_sandbox::Mounter::Helper;
const HAS_LANDLOCK: bool = true;
