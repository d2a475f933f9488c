//! Sessions that hold, and ends that are whole.

mod cuts;
mod exhaustion;
mod sessions;
mod trees;
