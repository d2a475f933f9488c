//! What can be said on the command line.

mod attach;
mod config;
mod detached;
mod files;
mod kill;
mod location;
mod mcp;
mod on;
mod run;
mod sandbox;
mod schema;
mod serve;
pub(crate) mod signal;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod units;

pub(crate) use attach::Attach;
pub(crate) use config::{Config, ConfigPath, ConfigShow, ConfigSubcommand};
pub(crate) use detached::{Completions, Logs, Ps};
pub(crate) use files::{Cat, Cp, Ls};
pub(crate) use kill::Kill;
pub(crate) use location::Location;
pub(crate) use mcp::{Mcp, McpCall, McpList, McpProxy, McpServe, McpServersArgs, McpSubcommand};
pub(crate) use on::{LAUNCHED, On, OnAny, server_or_launched};
pub(crate) use run::{Run, Variable};
pub(crate) use sandbox::{Doctor, Sandbox};
pub(crate) use schema::Schema;
pub(crate) use serve::Serve;
pub(crate) use units::Span;

use clap::Parser as _;

/// Runs processes for agents, tools and people, on whatever machine it stands
/// on.
#[derive(clap::Parser, Debug)]
#[command(name = "outpost", version, about, long_about = None)]
#[command(after_help = "Examples:
  outpost serve --listen ws://127.0.0.1:7777
  outpost run -- make
  outpost cp -r ./site ws://127.0.0.1:7777:/srv/site
  outpost config show --origins")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

impl Arguments {
    /// What was typed; if it makes no sense, that is said and the program ends.
    pub(crate) fn read() -> Self {
        Arguments::parse_from(kill::like_kill(std::env::args_os()))
    }
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
    /// Run a command, here or on a server, as if it were right here
    ///
    /// Its input, output and errors are this program's own, and so is its exit
    /// code. Ctrl-C and the size of the window reach it. When it ends, or we do,
    /// nothing of its tree is left. A lost connection is brought back without
    /// its noticing.
    Run(Run),
    /// Copy files and directories, to a server, from one, or here
    ///
    /// As cp: into the destination if that is a directory, and otherwise under
    /// its name. A server is named by its URL before the path, and a colon.
    /// Links to files are copied as the files they lead to; links to directories
    /// are not followed, and reported.
    Cp(Cp),
    /// List directories, of a server or here
    ///
    /// Everything in them, by name. Links count as what they lead to; those that
    /// lead nowhere are left out.
    Ls(Ls),
    /// Show files, of a server or here
    Cat(Cat),
    /// Run a command confined: to read, write and reach what it is granted
    ///
    /// Without more it reads everything, writes this directory and the temporary
    /// ones, and has no network. Its input, output and exit code are as with
    /// `outpost run`. What can't be enforced on this host isn't run.
    Sandbox(Sandbox),
    /// Tell what this host can enforce, and what to do where it can't
    Doctor(Doctor),
    /// List detached work: what was started with `run --detach`
    ///
    /// Work that has ended stays in the list for an hour. Without --on it is
    /// what runs on your own server; where that isn't running nothing is.
    Ps(Ps),
    /// Show what detached work has written, as far as it is retained
    Logs(Logs),
    /// Connect this terminal with detached work, where it was left
    ///
    /// Shows the end of what it has written and then goes on: keys, Ctrl-C and
    /// the size of the window reach it. Ctrl-] leaves it running. Another
    /// terminal that is attached to it is disconnected.
    Attach(Attach),
    /// End detached work, with everything it has started
    ///
    /// It is asked to end, and killed if it hasn't after 5s. With --signal it
    /// gets that signal and nothing else.
    Kill(Kill),
    /// End your own server, with everything it runs
    #[command(after_help = "Examples:
  outpost stop")]
    Stop,
    /// Print completions for a shell
    #[command(after_help = "Examples:
  outpost completions bash > ~/.local/share/bash-completion/completions/outpost
  outpost completions fish > ~/.config/fish/completions/outpost.fish")]
    Completions(Completions),
    /// Show how the server would be configured, and by whom
    Config(Config),
    /// Write the protocol down as JSON Schema
    ///
    /// One file for each method and notification, and outpost.json, which has all
    /// of them. A file of a method describes the request; its params and its
    /// result are under $defs.
    Schema(Schema),
    /// Use MCP servers, wherever they run
    Mcp(Mcp),
    /// What puts a terminal back if we are killed
    #[command(hide = true)]
    GuardTerminal,
    /// What the server starts itself as, to keep process trees
    #[command(hide = true)]
    Keeper,
}
