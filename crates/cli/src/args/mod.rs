//! What can be said on the command line.

mod config;
mod schema;
mod serve;
#[cfg(test)]
mod tests;
pub(crate) mod units;

pub(crate) use config::{Config, ConfigPath, ConfigShow, ConfigSubcommand};
pub(crate) use schema::Schema;
pub(crate) use serve::Serve;

/// Runs processes for agents, tools and people, on whatever machine it stands
/// on.
#[derive(clap::Parser, Debug)]
#[command(name = "outpost", version, about, long_about = None)]
#[command(after_help = "Examples:
  outpost serve --listen ws://127.0.0.1:7777
  outpost config show --origins")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

/// The things it can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Subcommand {
    /// Serve the exec protocol: clients start processes here and follow them
    ///
    /// Prints one line with its URL for each socket it listens on, as soon as it
    /// accepts connections; logs go to stderr. Ends with SIGTERM or SIGINT: asks
    /// every process to end, kills what is left after 2s, and exits with 0. A
    /// second signal ends at once.
    Serve(Serve),
    /// Show how the server would be configured, and by whom
    Config(Config),
    /// Write the protocol down as JSON Schema
    ///
    /// One file for each method and notification, and outpost.json, which has all
    /// of them. A file of a method describes the request; its params and its
    /// result are under $defs.
    Schema(Schema),
    /// What the server starts itself as, to keep process trees
    #[command(hide = true)]
    Keeper,
}
