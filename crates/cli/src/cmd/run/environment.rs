//! What a command finds around it.

use outpost_client::{EnvPolicy, Start};

use crate::{
    args::Variable,
    handed_on::{NotText, handed_on, handed_on_beside_ours},
};

/// What a terminal needs to be known by, also far away.
const TERMINAL: [&str; 2] = ["TERM", "COLORTERM"];
/// What tells a person's language.
const LANGUAGE: [&str; 2] = ["LANG", "LANGUAGE"];
const LOCALE: &str = "LC_";

/// As if it had been started right here: everything of ours, also what a server
/// would keep from strangers.
pub(super) fn ours(start: Start, variables: &[Variable]) -> Result<Start, NotText> {
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    let more = handed_on_beside_ours(variables, |name| std::env::var_os(name))?;
    Ok(start.env_policy(all).envs(more))
}

/// As if the person had come to the server: its environment, and the person's
/// terminal and language.
pub(super) fn theirs(start: Start, tty: bool, variables: &[Variable]) -> Result<Start, NotText> {
    let persons = here().filter(|(name, _)| {
        let name = name.as_str();
        let language = LANGUAGE.contains(&name) || name.starts_with(LOCALE);
        language || (tty && TERMINAL.contains(&name))
    });
    let more = handed_on(variables, |name| std::env::var_os(name))?;
    Ok(start.inherit_env().envs(persons).envs(more))
}

/// Everything of ours by name and value, for a server of our own that was
/// started at another time.
pub(super) fn exactly_ours(start: Start, variables: &[Variable]) -> Result<Start, NotText> {
    let more = handed_on(variables, |name| std::env::var_os(name))?;
    Ok(start.envs(here()).envs(more))
}

/// The wire carries text, so what isn't stays behind, unless somebody insists on it.
fn here() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
