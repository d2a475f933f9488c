//! What to run.

use super::On;

/// What to run, and where.
#[derive(clap::Args, Debug)]
pub(crate) struct Run {
    /// Let it go on alone, and print its id
    #[arg(short, long, required = true)]
    pub(crate) detach: bool,

    #[command(flatten)]
    pub(crate) on: On,

    /// The command and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<String>,
}
