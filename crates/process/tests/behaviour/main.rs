//! Behaviour of children, one file per subject. The tests work for root and for unprivileged users.

mod descriptors;
mod directory;
mod drain;
mod environment;
mod exit;
mod group_tree;
mod lookup;
mod pipes;
mod signals;
mod support;
mod terminal;
mod tree;
mod tree_signals;
