//! `outpost completions`: prints shell completions.

use std::{io::Write, process::ExitCode};

use clap::{Command, CommandFactory, Id, builder::PossibleValuesParser};
use clap_complete::Shell;

use crate::args::Arguments;

/// Stands for the names of hosts in a generated script.
const HOSTS: &str = "OUTPOST_HOSTS";

/// Prints the names of the hosts at the time of a completion.
const LIST_HOSTS: &str = "outpost hosts list --names 2>/dev/null";

/// Arguments of `outpost completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Prints the script.
pub(crate) fn completions(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = for_people(&Arguments::command());
    clap_complete::generate(args.shell, &mut command, "outpost", &mut script);
    let script = list_hosts(args.shell, &String::from_utf8(script)?);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(script.as_bytes())?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A copy of the command line without hidden arguments, which the generators don't filter, and with
/// [`HOSTS`] where a host can be named.
fn for_people(command: &Command) -> Command {
    let shown = Command::new(command.get_name().to_owned());
    let shown = match command.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    };
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let is_shown = |id: &Id| {
        command
            .get_arguments()
            .any(|arg| arg.get_id() == id && !arg.is_hide_set())
    };
    let groups = command
        .get_groups()
        .filter(|group| group.get_args().all(is_shown));
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let args = args.cloned().map(|arg| {
        if arg.get_id() == "on" || arg.get_id() == "host" {
            arg.value_parser(PossibleValuesParser::new([HOSTS]))
        } else {
            arg
        }
    });
    let shown = shown.args(args).groups(groups.cloned());
    shown.subcommands(subcommands.map(for_people))
}

/// Replaces [`HOSTS`] by a command. The generators for elvish and PowerShell leave values out.
fn list_hosts(shell: Shell, script: &str) -> String {
    match shell {
        // Within double quotes in bash; zsh evaluates the list of an action.
        Shell::Bash | Shell::Zsh => script.replace(HOSTS, &format!("$({LIST_HOSTS})")),
        // With an empty description.
        Shell::Fish => script.replace(&format!("{HOSTS}\\t''"), &format!("({LIST_HOSTS})")),
        _ => script.to_owned(),
    }
}
