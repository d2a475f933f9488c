//! `outpost config`.

use std::path::PathBuf;

/// How the server would be configured.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost config show --origins
  outpost config path")]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) subcommand: ConfigSubcommand,
}

/// What there is to know about it.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum ConfigSubcommand {
    /// Print the settings in force: of the environment and the files, over what is built in
    #[command(after_help = "Examples:
  outpost config show
  outpost config show --origins
  outpost config show --json | jq .config.retain_bytes")]
    Show(ConfigShow),
    /// Print where the files are, highest precedence first, and whether they exist
    #[command(after_help = "Examples:
  outpost config path
  $EDITOR \"$(outpost config path --user)\"")]
    Path(ConfigPath),
}

/// How to print the settings.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfigShow {
    /// Also say where each value comes from
    #[arg(long)]
    pub(crate) origins: bool,
    /// As JSON, in the form in which `config/read` answers
    #[arg(long)]
    pub(crate) json: bool,
    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Which files to name.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfigPath {
    /// Only the user's, and nothing but its path
    #[arg(long)]
    pub(crate) user: bool,
}
