//! Watches on real directories.

mod missing;
mod paths;
mod support;
mod trees;
mod unreadable;
