//! The attempts of `escapes` with mounts by bubblewrap.

mod closed_directories;
mod concurrent;
mod devices;
mod files;
mod fixture;
mod forged_marks;
mod hidden_libraries;
mod landlock;
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

const MOUNTER: outpost_sandbox::Mounter = outpost_sandbox::Mounter::Bubblewrap;
const HAS_LANDLOCK: bool = true;
