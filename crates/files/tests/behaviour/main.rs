//! What the operations do to real files.

mod clerk;
mod copy;
mod directories;
mod links;
mod races;
mod read;
mod remove;
mod special;
mod stream;
mod support;
mod walk;
mod write;
