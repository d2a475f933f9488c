//! `outpost serve`: a flag for each setting that has one.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, error::ErrorKind};

use crate::config::{self, Layer, SETTINGS};

const EXAMPLES: &str = "Examples:
  outpost serve                                   a free port on loopback
  outpost serve --listen ws://127.0.0.1:7777
  outpost serve --listen unix:///run/user/1000/outpost.sock
  outpost serve --listen stdio://                 one client, on stdin and stdout

Every flag can also be set by a variable (OUTPOST_RETAIN_BYTES=4MiB) or in
outpost.toml (retain_bytes = \"4MiB\"); `outpost config show` tells what is in force.";

/// Where and how to serve.
#[derive(Debug)]
pub(crate) struct Serve {
    /// The file to read instead of the user's.
    pub(crate) config: Option<PathBuf>,
    /// What the flags say.
    pub(crate) flags: Layer,
    /// Leave the terminal, and let go of stdout once it has said where we listen.
    pub(crate) background: bool,
}

/// `--config`, which says where settings are and is none itself.
pub(super) fn config_flag() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help("The file to read instead of the user's outpost.toml [env: OUTPOST_CONFIG]")
}

/// For those who start a server behind the back of a person.
fn background_flag() -> Arg {
    Arg::new("background")
        .long("background")
        .action(ArgAction::SetTrue)
        .hide(true)
}

impl clap::Args for Serve {
    fn augment_args(command: Command) -> Command {
        let command = command.after_help(EXAMPLES);
        let command = SETTINGS
            .iter()
            .filter_map(config::flag)
            .fold(command, Command::arg);
        command.arg(config_flag()).arg(background_flag())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = config::layer_of_flags(SETTINGS, matches)
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
