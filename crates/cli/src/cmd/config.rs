//! `outpost config`: prints the effective settings and their origins.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use outpost_server::ConfigSource as Source;
use serde_json::json;

use crate::{
    config::{self, ConfigFiles, Layer},
    render::{out, screen::Screen},
};

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

/// Prints settings or paths.
pub(crate) fn config(args: &Config) -> anyhow::Result<ExitCode> {
    match &args.subcommand {
        ConfigSubcommand::Show(show) => show_settings(show)?,
        ConfigSubcommand::Path(path) => out::lines(paths(path)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show_settings(args: &ConfigShow) -> anyhow::Result<()> {
    let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
    if !args.json {
        let table = config::table(&layers, args.origins, Screen::stdout());
        return Ok(out::raw_lines(table)?);
    }
    let result = config::read_result(&layers);
    let mut output = json!({"config": result.config});
    if args.origins {
        output["origins"] = serde_json::to_value(result.origins)?;
    }
    out::json(&output)
}

fn paths(args: &ConfigPath) -> anyhow::Result<Vec<String>> {
    let files = ConfigFiles::new(None, |name| std::env::var_os(name));
    if args.user {
        let user = files
            .user
            .context("cannot locate the user's file: HOME is not set")?;
        return Ok(vec![user.display().to_string()]);
    }
    let rows = [
        files.user.map(|file| ("user", file)),
        Some(("system", files.system)),
    ];
    let mut lines = Vec::new();
    for (name, file) in rows.into_iter().flatten() {
        let remark = match config::read_file(&file) {
            Ok(Some(_)) => String::new(),
            Ok(None) => "  (absent)".to_owned(),
            Err(why) => format!("  (unreadable: {why:#})"),
        };
        lines.push(format!("{name:6}  {}{remark}", file.display()));
    }
    Ok(lines)
}
