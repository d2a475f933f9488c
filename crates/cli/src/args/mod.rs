//! What can be said on the command line.

mod serve;
mod units;

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
    Serve(Serve),
}
