//! `outpost config`.

use std::path::PathBuf;

/// Arguments of `outpost config`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost config show --origins
  outpost config path")]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) subcommand: ConfigSubcommand,
}

/// Subcommands of `outpost config`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum ConfigSubcommand {
    /// Print the effective settings: environment and files over the defaults
    #[command(after_help = "Examples:
  outpost config show
  outpost config show --origins
  outpost config show --json | jq .config.retain_bytes")]
    Show(ConfigShow),
    /// Print the paths of the configuration files, highest precedence first, and whether they exist
    #[command(after_help = "Examples:
  outpost config path
  $EDITOR \"$(outpost config path --user)\"")]
    Path(ConfigPath),
}

/// Arguments of `outpost config show`.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfigShow {
    /// Also print where each value comes from
    #[arg(long)]
    pub(crate) origins: bool,
    /// Print JSON, in the form of the `config/read` result
    #[arg(long)]
    pub(crate) json: bool,
    /// The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Arguments of `outpost config path`.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfigPath {
    /// Print only the path of the user's file
    #[arg(long)]
    pub(crate) user: bool,
}
