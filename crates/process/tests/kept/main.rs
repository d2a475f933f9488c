//! The suite of behaviours again, with a keeper above every child, which must not make a difference;
//! and what only keepers promise.

#[path = "../behaviour/descriptors.rs"]
mod descriptors;
#[path = "../behaviour/directory.rs"]
mod directory;
#[path = "../behaviour/drain.rs"]
mod drain;
#[path = "../behaviour/environment.rs"]
mod environment;
#[path = "../behaviour/exit.rs"]
mod exit;
#[path = "../behaviour/lookup.rs"]
mod lookup;
#[path = "../behaviour/pipes.rs"]
mod pipes;
#[path = "../behaviour/signals.rs"]
mod signals;
#[path = "../behaviour/terminal.rs"]
mod terminal;
#[path = "../behaviour/tree.rs"]
mod tree;

mod choice;
mod keepers;
mod limits;
mod misbehaviour;
mod mothers;
mod requests;
mod support;
mod survivors;
