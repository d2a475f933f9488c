//! `outpost config`: prints the effective settings and their origins.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use outpost_server::ConfigSource as Source;
use serde_json::json;

use crate::{
    config::{self, ConfigFiles, Layer},
    render::screen::Screen,
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
    let text = match &args.subcommand {
        ConfigSubcommand::Show(show) => settings(show)?,
        ConfigSubcommand::Path(path) => paths(path)?,
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush().context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ConfigShow) -> anyhow::Result<String> {
    let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
    if !args.json {
        return Ok(config::table(&layers, args.origins, Screen::stdout()));
    }
    let result = config::read_result(&layers);
    let mut output = json!({"config": result.config});
    if args.origins {
        output["origins"] = serde_json::to_value(result.origins)?;
    }
    Ok(format!("{output:#}\n"))
}

fn paths(args: &ConfigPath) -> anyhow::Result<String> {
    let files = ConfigFiles::new(None, |name| std::env::var_os(name));
    if args.user {
        let user = files
            .user
            .context("cannot locate the user's file: HOME is not set")?;
        return Ok(format!("{}\n", user.display()));
    }
    let rows = [
        files.user.map(|file| ("user", file)),
        Some(("system", files.system)),
    ];
    let mut text = String::new();
    for (name, file) in rows.into_iter().flatten() {
        let remark = match config::read_file(&file) {
            Ok(Some(_)) => String::new(),
            Ok(None) => "  (absent)".to_owned(),
            Err(why) => format!("  (unreadable: {why:#})"),
        };
        text.push_str(&format!("{name:6}  {}{remark}\n", file.display()));
    }
    Ok(text)
}
