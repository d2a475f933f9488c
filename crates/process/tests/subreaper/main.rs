//! The behaviour suite with a subreaper for every child, and tests of subreapers themselves.

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
mod factory;
mod limits;
mod misbehaviour;
mod reapers;
mod requests;
mod support;
mod survivors;
