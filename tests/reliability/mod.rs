//! Tests sessions, process trees and shortage of resources.

mod cuts;
mod exhaustion;
mod hung_mounts;
mod killed_server;
mod memory_budget;
mod no_kernel_memory;
mod no_memory;
mod sessions;
mod trees;
