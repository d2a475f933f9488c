//! What can be said on the command line.

mod run;
mod serve;
mod units;

pub(crate) use run::{On, Run, Variable};
pub(crate) use serve::{LogFormat, Serve};

/// Runs processes for agents, tools and people, on whatever machine it stands
/// on.
#[derive(clap::Parser, Debug)]
#[command(name = "outpost", version, about, long_about = None)]
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
    /// Run a command, here or on a server, as if it were right here
    ///
    /// Its input, output and errors are this program's own, and so is its exit
    /// code. Ctrl-C and the size of the window reach it. When it ends, or we do,
    /// nothing of its tree is left. A lost connection is brought back without
    /// its noticing.
    Run(Run),
    /// What puts a terminal back if we are killed
    #[command(hide = true)]
    GuardTerminal,
    /// What the server starts itself as, to keep process trees
    #[command(hide = true)]
    Keeper,
}
