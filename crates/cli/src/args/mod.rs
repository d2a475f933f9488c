//! Command-line arguments that several commands have. Each command declares its own arguments.

mod limits;
mod location;
mod network;
mod on;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use limits::{LimitArgs, ended_by_limit};
pub(crate) use location::Location;
pub(crate) use network::NetworkArgs;
pub(crate) use on::{
    AccessArgs, LAUNCHED, LOCAL, On, OnOrLaunch, SSH, UnusedAccess, server_or_launched,
};
pub(crate) use variables::{Variable, env_args, local_variables, text, variable};

use clap::Parser as _;

use crate::{
    cmd::{
        attach::Attach, cat::Cat, completions::Completions, config::Config, cp::Cp, doctor::Doctor,
        hosts::Hosts, kill, kill::Kill, logs::Logs, ls::Ls, mcp::Mcp, ps::Ps, run::Run,
        sandbox::Sandbox, schema::Schema, serve::Serve, token::Token, watch::Watch,
    },
    render::visible::visible,
};

/// Runs processes for agents, tools and people, on any host
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
    /// Parses the command line. Prints an error and exits if it is invalid.
    pub(crate) fn read() -> Self {
        let args = kill::like_kill(std::env::args_os());
        Arguments::try_parse_from(&args).unwrap_or_else(|error| {
            // An error quotes arguments, which may be names that a shell expanded a pattern to.
            let shown = args
                .iter()
                .map(|arg| visible(&arg.to_string_lossy()).into_owned());
            match Arguments::try_parse_from(shown) {
                Err(shown) => shown.exit(),
                Ok(_) => error.exit(),
            }
        })
    }
}

/// Subcommands.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Subcommand {
    /// Run a server on which clients start and follow processes
    ///
    /// Prints one line with a URL for each socket as soon as it accepts connections; logs go to
    /// stderr. On SIGTERM or SIGINT, terminates every process, kills the remaining ones after 2s,
    /// and exits with 0. A second signal kills at once.
    Serve(Serve),
    /// Run a command, locally or on a server
    ///
    /// The command uses this program's stdin, stdout and stderr, and its exit code becomes this
    /// program's. Ctrl-C and the terminal size are forwarded. Its whole process tree ends with it
    /// or with this program. After a lost connection it reconnects without interrupting the
    /// command.
    Run(Run),
    /// Copy files and directories to, from or between servers
    ///
    /// Like cp: into the destination if it is a directory, otherwise to that name. A path on a
    /// server is written URL:PATH. Links to files are copied as files; links to directories are not
    /// followed, and reported.
    Cp(Cp),
    /// List directories, locally or on a server
    ///
    /// Lists all entries by name. Links count as what they point to; broken links are left out.
    Ls(Ls),
    /// Print files, local or on a server
    Cat(Cat),
    /// Watch files and directories, and run a command when they change
    ///
    /// Watches everything below a directory. Prints changed paths, or runs a command after each
    /// batch of changes; changes during the command start it again afterwards. Paths may be
    /// replaced, removed and created again. After a lost connection it reconnects, and says that it
    /// may have missed changes.
    Watch(Watch),
    /// Run a command in a sandbox
    ///
    /// By default it may read everything, write this directory and the temporary directories, and
    /// has no network. Stdin, stdout, stderr and the exit code are as with `outpost run`. A sandbox
    /// that can't be enforced on this host is an error.
    Sandbox(Sandbox),
    /// Check what this host can enforce, and suggest remedies
    Doctor(Doctor),
    /// List detached work: processes started with `run --detach`
    ///
    /// Exited processes stay in the list for an hour. Without --on, lists the processes of your own
    /// server, if it is running.
    Ps(Ps),
    /// Print the retained output of detached work
    Logs(Logs),
    /// Connect this terminal with detached work
    ///
    /// Shows the end of its output, then continues live: keys, Ctrl-C and the terminal size are
    /// forwarded. Ctrl-] detaches. Another attached terminal is disconnected.
    Attach(Attach),
    /// End detached work with its whole process tree
    ///
    /// Terminates it, and kills it after 5s. With --signal, only sends that signal.
    Kill(Kill),
    /// Stop your own server with everything it runs
    #[command(after_help = "Examples:
  outpost stop")]
    Stop,
    /// Create, list and revoke the named tokens of a server
    Token(Token),
    /// Print shell completions
    #[command(after_help = "Examples:
  outpost completions bash > ~/.local/share/bash-completion/completions/outpost
  outpost completions fish > ~/.config/fish/completions/outpost.fish")]
    Completions(Completions),
    /// Show the effective configuration and its origins
    Config(Config),
    /// Write the protocol as JSON Schema
    ///
    /// One file for each method and notification, and outpost.json with all of them. The file of a
    /// method describes the request; its params and result are under $defs.
    Schema(Schema),
    /// Manage the hosts that --on can name
    Hosts(Hosts),
    /// Use MCP servers on any executor
    Mcp(Mcp),
    /// Internal: restores the terminal if its parent is killed
    #[command(hide = true)]
    GuardTerminal,
    /// Internal: connects stdin and stdout to the user's server, for ssh
    #[command(hide = true)]
    Relay,
    /// Internal: subreaper of the server's process trees
    #[command(hide = true)]
    Subreaper,
}
