//! Outpost itself as an MCP server: tools to run commands and to use files,
//! wherever a place is.
//!
//! - [`Workbench`] is what calls share: where commands run ([`Ground`]), the
//!   processes they have ids for (`roster`), and the [`Bounds`] of everything
//! - `tools/` has a file for each tool; `tool` says what one is, `schema` how it
//!   is described, `mishap` what can go wrong that isn't the command's fault
//! - `follow` listens to a process and writes its `transcript`; `excerpt` decides
//!   how much of that is shown, `words` how
//! - `turns` lets changes of one file follow each other
//! - `files/` decides for the file tools: parts of a file, exact edits, what a
//!   search finds and what it leaves alone
//! - [`serve`](Workbench::serve) is the conversation, `wire` its lines, `batches`
//!   what came in one of them
//!
//! # Theory of operation
//!
//! Nothing is remembered between calls but processes, and those have ids that are
//! given out and told back. Each has a listener that takes its output as it comes,
//! so that a process never waits for a model to ask. What is kept is bounded: the
//! beginning and the end of each stream. A cursor is a number of bytes, so it
//! means the same to whoever has it, however often it is used.
//!
//! A command that fails is an answer like any other. An error is what the tool
//! itself could not do.

mod batches;
mod bounds;
mod call;
mod conversation;
mod excerpt;
mod files;
mod follow;
mod ground;
mod mishap;
mod roster;
mod schema;
mod tool;
mod tools;
mod transcript;
mod turns;
mod wire;
mod words;
mod workbench;

pub use bounds::Bounds;
use call::Call;
pub use conversation::ServeError;
use excerpt::{Cut, Digest, Page};
use follow::State;
pub use ground::Ground;
use mishap::Mishap;
use roster::{Job, Roster};
use tool::{Answer, Effect, Row, Tool};
pub use transcript::Keep;
use transcript::{Stream, Transcript};
pub use workbench::{Confinement, Setup, Workbench};
