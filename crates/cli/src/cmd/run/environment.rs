//! What a command finds around it.

use outpost_client::{EnvPolicy, Start};

use crate::args::Variable;

/// What a terminal needs to be known by, also far away.
const TERMINAL: [&str; 2] = ["TERM", "COLORTERM"];
/// What tells a person's language.
const LANGUAGE: [&str; 2] = ["LANG", "LANGUAGE"];
const LOCALE: &str = "LC_";

/// As if it had been started right here: everything of ours, also what a server
/// would keep from strangers.
pub(super) fn ours(start: Start, variables: &[Variable]) -> Start {
    let all = EnvPolicy {
        ignore_default_excludes: true,
        ..EnvPolicy::default()
    };
    set(start.env_policy(all), variables)
}

/// As if the person had come to the server: its environment, and the person's
/// terminal and language.
pub(super) fn theirs(start: Start, tty: bool, variables: &[Variable]) -> Start {
    let persons = here().filter(|(name, _)| {
        let name = name.as_str();
        let language = LANGUAGE.contains(&name) || name.starts_with(LOCALE);
        language || (tty && TERMINAL.contains(&name))
    });
    set(start.inherit_env().envs(persons), variables)
}

/// Everything of ours by name and value, for a server of our own that was
/// started at another time.
pub(super) fn exactly_ours(start: Start, variables: &[Variable]) -> Start {
    set(start.envs(here()), variables)
}

/// The wire carries text, so what isn't stays behind.
fn here() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn set(start: Start, variables: &[Variable]) -> Start {
    variables.iter().fold(start, |start, variable| {
        let here = || std::env::var(&variable.name).ok();
        match variable.value.clone().or_else(here) {
            Some(value) => start.env(&variable.name, value),
            // Not there here, so not there either.
            None => start,
        }
    })
}
