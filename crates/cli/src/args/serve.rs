//! `outpost serve`: a flag for each setting that has one.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, error::ErrorKind};

use crate::config::{self, Layer};

const EXAMPLES: &str = "Examples:
  outpost serve                                   a free port on loopback
  outpost serve --listen ws://127.0.0.1:7777
  outpost serve --listen unix:///run/user/1000/outpost.sock
  outpost serve --listen stdio://                 one client, on stdin and stdout

Every flag can also be set by a variable (OUTPOST_RETAIN_BYTES=4MiB) or in
outpost.toml (retain_bytes = \"4MiB\"); `outpost config show` prints the settings.";

/// Arguments of `outpost serve`.
#[derive(Debug)]
pub(crate) struct Serve {
    /// The file to read instead of the user's.
    pub(crate) config: Option<PathBuf>,
    /// Settings given by flags.
    pub(crate) flags: Layer,
    /// Detach from the terminal, and close stdout after printing the URLs.
    pub(crate) background: bool,
}

/// `--config`.
pub(super) fn config_flag() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help("The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]")
}

/// `--background`, used when the CLI starts the user's server.
fn background_flag() -> Arg {
    Arg::new("background")
        .long("background")
        .action(ArgAction::SetTrue)
        .hide(true)
}

impl clap::Args for Serve {
    fn augment_args(command: Command) -> Command {
        let command = command.after_help(EXAMPLES);
        let command = config::flags().fold(command, Command::arg);
        command.arg(config_flag()).arg(background_flag())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = config::flags_layer(matches)
            .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n")))?;
        Ok(Serve {
            config: matches.get_one::<PathBuf>("config").cloned(),
            flags,
            background: matches.get_flag("background"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
