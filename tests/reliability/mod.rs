//! Sessions that hold, and ends that are whole.

mod cuts;
mod exhaustion;
mod no_kernel_memory;
mod no_memory;
mod sessions;
mod trees;
