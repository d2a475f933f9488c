//! What children do and what is done to them, one file per behaviour. All of it works for root and
//! for a plain user; where the two differ the tests say so.

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
