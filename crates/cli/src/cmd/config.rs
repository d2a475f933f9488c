//! `outpost config`: what is in force, and where it is from.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use serde_json::json;

use crate::{
    args::{Config, ConfigPath, ConfigShow, ConfigSubcommand},
    colour,
    config::{self, Layer, Places, Show, Source},
};

/// Prints; a configuration that makes no sense is one line and exit code 1.
pub(crate) fn run(args: &Config) -> ExitCode {
    let text = match &args.subcommand {
        ConfigSubcommand::Show(show) => shown(show),
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

fn shown(args: &ConfigShow) -> anyhow::Result<String> {
    let layers = config::load(Layer::new(Source::CommandLine), args.config.clone())?;
    if !args.json {
        let show = Show {
            origins: args.origins,
            coloured: colour::wanted(&io::stdout()),
        };
        return Ok(show.table(&layers));
    }
    let reading = config::reading::reading(&layers);
    let mut answer = json!({"config": reading.config});
    if args.origins {
        answer["origins"] = serde_json::to_value(reading.origins)?;
    }
    Ok(format!("{answer:#}\n"))
}

fn paths(args: &ConfigPath) -> anyhow::Result<String> {
    let places = Places::new(None, |name| std::env::var_os(name));
    if args.user {
        let user = places.user.context("there is no HOME to look in")?;
        return Ok(format!("{}\n", user.display()));
    }
    let rows = [
        places.user.map(|file| ("user", file)),
        Some(("system", places.system)),
    ];
    let mut text = String::new();
    for (who, file) in rows.into_iter().flatten() {
        let remark = match config::read(&file) {
            Ok(Some(_)) => String::new(),
            Ok(None) => "  (absent)".to_owned(),
            Err(why) => format!("  (unreadable: {why})"),
        };
        text.push_str(&format!("{who:6}  {}{remark}\n", file.display()));
    }
    Ok(text)
}
