//! Checks that hold for every command.

use clap::{Command, CommandFactory};

use super::Arguments;

fn check(command: &Command, path: &str) {
    let help = command.get_after_help().map(ToString::to_string);
    assert!(
        help.is_some_and(|help| help.starts_with("Examples:\n") && help.contains(path)),
        "`{path} --help` has no example"
    );
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        check(subcommand, &format!("{path} {}", subcommand.get_name()));
    }
}

#[test]
fn every_command_has_an_example() {
    check(&Arguments::command(), "outpost");
}

#[test]
fn command_line_passes_debug_assertions() {
    Arguments::command().debug_assert();
}
