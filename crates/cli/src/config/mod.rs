//! What the server is told about how to be, and by whom.
//!
//! [`SETTINGS`] is the one list of settings. Flags, variables, files, `config
//! show`, `config/read` and the page about configuration are all held to it, so
//! a new setting is one row there, and one in `docs/configuration.md`.
//!
//! - A **source** says some of them: the command line, the environment, the
//!   user's file, the system's file, and what is built in, which says all of
//!   them. What one source says is a [`Layer`]; each kind of source has a file
//!   here that makes one, and none of them touches the disk.
//! - [`Layers`] has all five, highest precedence first. What is said higher up
//!   replaces what is said further down, lists and tables as a whole.
//! - [`InForce`] is the outcome, in the types that the engine and the server
//!   want. [`reading`] is the outcome for people and programs, with the secrets
//!   masked.
//! - [`load()`] is the shell around it: it asks where the files are, and reads
//!   them.
//!
//! A value is JSON on its way, in the form a file would have it; what a type
//! accepts and how it is written is [`spoken`]'s business.

mod choice;
mod environment;
mod error;
mod field;
mod file;
mod flags;
mod in_force;
mod layer;
mod layers;
mod load;
mod mcp;
mod nearest;
mod places;
mod profiles;
pub(crate) mod reading;
mod setting;
mod settings;
mod show;
mod spoken;

pub(crate) use error::ConfigError;
pub(crate) use flags::{flag, layer_of_flags};
pub(crate) use in_force::InForce;
pub(crate) use layer::{Layer, Source};
pub(crate) use layers::Layers;
pub(crate) use load::{load, read};
pub(crate) use mcp::{McpServers, RemotePlace};
pub(crate) use places::Places;
pub(crate) use setting::Setting;
pub(crate) use settings::SETTINGS;
pub(crate) use show::Show;
#[cfg(test)]
use show::written;
