//! The environment of a command.

use outpost_client::{EnvPolicy, Start};

use crate::{
    args::Variable,
    env_args::{NotUnicode, env_args, env_args_over_inherited},
};

/// Variables that describe the terminal.
const TERMINAL: [&str; 2] = ["TERM", "COLORTERM"];
/// Variables that describe the language.
const LANGUAGE: [&str; 2] = ["LANG", "LANGUAGE"];
const LOCALE: &str = "LC_";

/// For a local command: inherits the whole environment, including names that look like secrets.
pub(super) fn inherited(start: Start, variables: &[Variable]) -> Result<Start, NotUnicode> {
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    let more = env_args_over_inherited(variables, |name| std::env::var_os(name))?;
    Ok(start.env_policy(all).envs(more))
}

/// For a command on a server: inherits the server's environment, plus the variables of the terminal
/// and the language.
pub(super) fn for_server(
    start: Start,
    tty: bool,
    variables: &[Variable],
) -> Result<Start, NotUnicode> {
    let terminal_and_language = local_variables().filter(|(name, _)| {
        let name = name.as_str();
        let language = LANGUAGE.contains(&name) || name.starts_with(LOCALE);
        language || (tty && TERMINAL.contains(&name))
    });
    let more = env_args(variables, |name| std::env::var_os(name))?;
    Ok(start.inherit_env().envs(terminal_and_language).envs(more))
}

/// For a command on the user's own server: sends the whole local environment.
pub(super) fn copied(start: Start, variables: &[Variable]) -> Result<Start, NotUnicode> {
    let more = env_args(variables, |name| std::env::var_os(name))?;
    Ok(start.envs(local_variables()).envs(more))
}

/// The local variables that are Unicode text; the wire carries nothing else.
fn local_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
