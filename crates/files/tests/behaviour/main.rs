//! The operations on real files.

mod copy;
mod directories;
mod executor;
mod links;
mod listing_memory;
mod races;
mod read;
mod remove;
mod special;
mod stream;
mod support;
mod walk;
mod write;
