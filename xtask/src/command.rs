//! Runs other programs, without stdin.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::checkout;

/// Creates a command without stdin.
pub(crate) fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Creates a command of the same cargo, at the root of the checkout, from a line of words that
/// contain no spaces.
pub(crate) fn cargo(line: &str) -> Command {
    let mut command = quiet(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.args(line.split(' ')).current_dir(checkout::root());
    command
}

/// Runs a command with inherited output. A failure names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("starting `{shown}`"))?;
    ensure!(status.success(), "`{shown}` ended with {status}");
    Ok(())
}

/// Returns true if the command succeeds. Its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Finds a program on the PATH or in cargo's bin directory.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")));
    env::split_paths(&path)
        .chain(cargo_home.map(|home| home.join("bin")))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// Formats a command with the program's file name.
fn show(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_the_command_and_its_status() {
        let error = run(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sh -c exit 3` ended with exit status: 3"
        );
    }

    #[test]
    fn missing_program_does_not_succeed() {
        assert!(succeeds(&mut quiet("true")));
        assert!(!succeeds(&mut quiet("false")));
        assert!(!succeeds(&mut quiet("no-such-program-anywhere")));
        assert!(find("no-such-program-anywhere").is_none());
    }
}
