//! `outpost config`: prints the effective settings and their origins.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use serde_json::json;

use crate::{
    args::{Config, ConfigPath, ConfigShow, ConfigSubcommand},
    colour,
    config::{self, ConfigFiles, Layer, Source, Table},
};

/// Runs the command. An invalid configuration is reported on one line, with exit code 1.
pub(crate) fn run(args: &Config) -> ExitCode {
    let text = match &args.subcommand {
        ConfigSubcommand::Show(show) => settings(show),
        ConfigSubcommand::Path(path) => paths(path),
    };
    let printed = text.and_then(|text| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush().context("cannot write to stdout")
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "outpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn settings(args: &ConfigShow) -> anyhow::Result<String> {
    let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
    if !args.json {
        let table = Table {
            origins: args.origins,
            coloured: colour::wanted(&io::stdout()),
        };
        return Ok(table.render(&layers));
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
            Err(why) => format!("  (unreadable: {why})"),
        };
        text.push_str(&format!("{name:6}  {}{remark}\n", file.display()));
    }
    Ok(text)
}
