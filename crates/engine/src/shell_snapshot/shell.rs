//! The scripts of each shell.

use super::state::Marker;

/// A shell whose state can be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellKind {
    Bash,
    Zsh,
    /// A POSIX shell, such as dash.
    Sh,
}

impl ShellKind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(ShellKind::Bash),
            "zsh" => Some(ShellKind::Zsh),
            "sh" => Some(ShellKind::Sh),
            _ => None,
        }
    }

    /// Returns the script for `-lc` that prints the state after the profile, in the form that
    /// [`ShellState`](super::state::ShellState) parses.
    ///
    /// The script works whatever the profile has set: quoted names are no aliases, `builtin` and
    /// `command` skip functions, and `errexit` is without effect inside `||`. The state is used only if
    /// the end marker is printed. The last test is for the restored command, which reads its state from
    /// there.
    pub(crate) fn capture_script(self, marker: &Marker) -> String {
        let (run, profile, shopts, functions, aliases) = match self {
            ShellKind::Bash => (
                r"\builtin",
                r#"\builtin test -n "${BASH_ENV-}" || { \builtin test -r ~/.bashrc && \builtin . ~/.bashrc; } >/dev/null 2>&1"#,
                r"\builtin shopt -p",
                r"\builtin declare -f; \builtin declare -Fx",
                r"\builtin alias -p",
            ),
            ShellKind::Zsh => (
                r"\builtin",
                r#"{ \builtin test -r "${ZDOTDIR:-${HOME-}}/.zshrc" && \builtin . "${ZDOTDIR:-${HOME-}}/.zshrc"; } >/dev/null 2>&1"#,
                r"\builtin :",
                r"\builtin functions",
                r"\builtin alias -L",
            ),
            // It can print neither functions nor, in a form that is safe to read again, aliases.
            ShellKind::Sh => (
                r"\command",
                r"\command :",
                r"\command :",
                r"\command :",
                r"\command :",
            ),
        };
        let [first, second] = marker.halves();
        format!(
            r"{{
{profile}
{run} printf '%s%s' {first} {second}
{shopts}; {run} printf '\0'
{functions}; {run} printf '\0'
{aliases}; {run} printf '\0'
{run} set +o; {run} printf '\0'
{run} test -e /dev/fd/0 && /usr/bin/env -0 && {run} printf '%s%s' {first} {second}
}} || {run} :"
        )
    }

    /// Returns the options and the command line argument that run `command` after the state was restored
    /// from `descriptor`, or after the options were `set`.
    pub(crate) fn restoring_script(
        self,
        command: &str,
        descriptor: i32,
        set: &str,
    ) -> (&'static str, String) {
        match self {
            // Privileged, it reads no startup file and imports no function.
            ShellKind::Bash => (
                "-pc",
                format!("set +o privileged\n. /dev/fd/{descriptor}\n{command}"),
            ),
            // It parses the whole argument before it runs it, so that without `eval` restored aliases
            // would come too late.
            ShellKind::Zsh => {
                let quoted = command.replace('\'', r"'\''");
                ("-fc", format!(". /dev/fd/{descriptor}\neval '{quoted}'"))
            }
            ShellKind::Sh => ("-c", format!("{set}\n{command}")),
        }
    }

    /// Returns the line that closes the descriptor from which the state is read.
    pub(crate) fn closing_line(self, descriptor: i32) -> String {
        match self {
            // zsh does not support descriptor numbers above 9 in redirections.
            ShellKind::Zsh => {
                format!("__outpost_fd={descriptor}; exec {{__outpost_fd}}<&-; unset __outpost_fd\n")
            }
            ShellKind::Bash | ShellKind::Sh => format!("exec {descriptor}<&-\n"),
        }
    }
}
