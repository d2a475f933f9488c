//! Reads and parses the state that a capturing shell prints.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use super::shell::ShellKind;
use crate::environment::is_withheld;

/// Options that belong to one run of a shell, and `errexit`, which the released servers drop.
const UNRESTORED_OPTIONS: [&str; 9] = [
    "errexit",
    "interactive",
    "login",
    "privileged",
    "restricted",
    "shinstdin",
    "singlecommand",
    "stdin",
    "zle",
];
/// Options that would print the restoring script. They are restored last.
const TRACE_OPTIONS: [&str; 2] = ["verbose", "xtrace"];
/// Options of bash that cannot be set.
const UNRESTORED_SHOPTS: [&str; 2] = ["login_shell", "restricted_shell"];
/// Variables that belong to one run of a shell, or to the client.
const UNRESTORED_VARIABLES: [&str; 4] = ["_", "PWD", "OLDPWD", "CODEX_THREAD_ID"];

/// A random text before and after the state, which tells it from the output of the profile.
pub(crate) struct Marker(String);

impl Marker {
    pub(crate) fn random() -> Self {
        Marker(uuid::Uuid::new_v4().simple().to_string())
    }

    /// Returns the halves, which are apart in the script so that a profile that prints the command line
    /// does not print the marker.
    pub(crate) fn halves(&self) -> [&str; 2] {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        [first, second]
    }
}

/// How much of the state was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more.
    Partial,
    /// All of it.
    Complete,
}

/// Collects the state from the output of a capturing shell.
pub(crate) struct StateReader {
    /// Precedes the state.
    marker: Vec<u8>,
    /// Follows the state: the last variable ends with NUL.
    end: Vec<u8>,
    has_begun: bool,
    bytes: Vec<u8>,
}

impl StateReader {
    pub(crate) fn new(marker: &Marker) -> Self {
        let marker = marker.0.clone().into_bytes();
        StateReader {
            end: [b"\0", &marker[..]].concat(),
            marker,
            has_begun: false,
            bytes: Vec::new(),
        }
    }

    /// Adds output.
    pub(crate) fn push(&mut self, output: &[u8]) -> Progress {
        let searched = self.bytes.len();
        self.bytes.extend_from_slice(output);
        let mut from = searched.saturating_sub(self.end.len());
        if !self.has_begun {
            let Some(at) = find(&self.bytes, &self.marker) else {
                let kept = self.bytes.len().min(self.marker.len() - 1);
                self.bytes.drain(..self.bytes.len() - kept);
                return Progress::Partial;
            };
            self.bytes.drain(..at + self.marker.len());
            self.has_begun = true;
            from = 0;
        }
        match find(&self.bytes[from..], &self.end) {
            Some(at) => {
                self.bytes.truncate(from + at + 1);
                Progress::Complete
            }
            None => Progress::Partial,
        }
    }

    /// Returns the bytes of the state that were read so far.
    pub(crate) fn state(&self) -> &[u8] {
        match self.has_begun {
            true => &self.bytes,
            false => &[],
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The state of a shell: what its script has to run, and its exported variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShellState {
    pub(crate) script: Vec<u8>,
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl ShellState {
    /// Parses the complete state of a shell that was started with the environment `given`. Of its
    /// variables, only those that the profile has set or changed belong to the state: others may be of
    /// one request only.
    pub(crate) fn parse(
        kind: ShellKind,
        bytes: &[u8],
        given: &[(OsString, OsString)],
    ) -> Option<Self> {
        let mut sections = bytes.split(|byte| *byte == 0);
        let shopts = sections.next()?;
        let functions = sections.next()?;
        let aliases = sections.next()?;
        let (options, traces) = set_commands(kind, sections.next()?);
        let shopts = shopts.split_inclusive(|byte| *byte == b'\n');
        let shopts: Vec<_> = shopts.filter(|line| !is_unrestored_shopt(line)).collect();
        let shopts = shopts.concat();
        let (options, traces) = (options.as_bytes(), traces.as_bytes());
        // Functions are parsed as `shopt` of bash and the options of zsh say, and before there are aliases.
        let parts = match kind {
            ShellKind::Bash => [&shopts, functions, aliases, options, traces],
            ShellKind::Zsh | ShellKind::Sh => [&shopts, options, functions, aliases, traces],
        };
        let env = sections.filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let name = OsStr::from_bytes(&variable[..at]);
            let value = OsString::from_vec(variable[at + 1..].to_vec());
            let is_given = || {
                given
                    .iter()
                    .any(|(one, other)| one == name && *other == value)
            };
            (is_restored(kind, name) && !is_given()).then(|| (name.to_owned(), value))
        });
        Some(ShellState {
            script: parts.concat(),
            env: env.collect(),
        })
    }
}

/// Converts the output of `set +o` to commands that set all options at once: an option may change how
/// the next command is run. Returns those that trace separately.
fn set_commands(kind: ShellKind, section: &[u8]) -> (String, String) {
    let section = String::from_utf8_lossy(section);
    let options = section.lines().filter_map(|line| {
        let (sign, name) = line.strip_prefix("set ")?.split_once(' ')?;
        (!UNRESTORED_OPTIONS.contains(&name)).then_some((sign, name))
    });
    let (traces, others): (Vec<_>, Vec<_>) =
        options.partition(|(_, name)| TRACE_OPTIONS.contains(name));
    let set = match kind {
        ShellKind::Bash | ShellKind::Zsh => r"\builtin set",
        // It is the first command.
        ShellKind::Sh => "set",
    };
    let command = |options: &[(&str, &str)]| match options {
        [] => String::new(),
        options => {
            let words = options.iter().map(|(sign, name)| format!(" {sign} {name}"));
            format!("{set}{}\n", words.collect::<String>())
        }
    };
    (command(&others), command(&traces))
}

fn is_unrestored_shopt(line: &[u8]) -> bool {
    let name = line.trim_ascii_end().rsplit(|byte| *byte == b' ').next();
    UNRESTORED_SHOPTS
        .iter()
        .any(|unrestored| name == Some(unrestored.as_bytes()))
}

fn is_restored(kind: ShellKind, name: &OsStr) -> bool {
    // Bash exports its functions as variables. The script defines them.
    let is_function = kind == ShellKind::Bash && name.as_bytes().starts_with(b"BASH_FUNC_");
    let is_unrestored = UNRESTORED_VARIABLES.iter().any(|one| name == *one);
    !(name.is_empty() || is_function || is_unrestored || is_withheld(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Marker {
        Marker("begin-end".to_owned())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn state_is_found_in_noise_however_it_is_split() {
        let output = b"noise begin-en begin-endstate\0A=begin-end\0begin-endlate";
        for length in 1..output.len() {
            let mut reader = StateReader::new(&marker());
            let chunks = output.chunks(length);
            let complete = chunks.map(|chunk| reader.push(chunk));
            let complete: Vec<_> = complete
                .take_while(|progress| *progress == Progress::Partial)
                .collect();
            assert!(complete.len() * length < output.len(), "{length}");
            assert_eq!(reader.state(), b"state\0A=begin-end\0", "{length}");
        }
    }

    #[test]
    fn incomplete_state_is_not_complete() {
        let mut reader = StateReader::new(&marker());
        assert_eq!(reader.push(&[b'x'; 1000]), Progress::Partial);
        assert_eq!(reader.state(), b"");
        assert!(reader.bytes.len() < 20, "noise is not kept");
        assert_eq!(reader.push(b"begin-endstate\0A=b"), Progress::Partial);
        assert_eq!(reader.state(), b"state\0A=b");
    }

    #[test]
    fn script_restores_functions_before_aliases_and_traces_last() {
        let state =
            b"shopt -s extglob\nshopt -s login_shell\n\0f () \n{ \n    :\n}\n\0alias a='b'\n\0\
            set -o errexit\nset -o xtrace\nset -o nounset\nset +o posix\n\0";
        let parse = |kind| {
            let state = ShellState::parse(kind, state, &[]).expect("it is complete");
            String::from_utf8(state.script).expect("it is text")
        };
        assert_eq!(
            parse(ShellKind::Bash),
            "shopt -s extglob\nf () \n{ \n    :\n}\nalias a='b'\n\
            \\builtin set -o nounset +o posix\n\\builtin set -o xtrace\n"
        );
        assert_eq!(
            parse(ShellKind::Zsh),
            "shopt -s extglob\n\\builtin set -o nounset +o posix\nf () \n{ \n    :\n}\n\
            alias a='b'\n\\builtin set -o xtrace\n"
        );
        let sh = ShellState::parse(ShellKind::Sh, b"\0\0\0set -o nounset\n\0", &[]);
        assert_eq!(sh.expect("it is complete").script, b"set -o nounset\n");
        assert_eq!(ShellState::parse(ShellKind::Sh, b"\0\0", &[]), None);
    }

    #[test]
    fn variables_that_the_profile_changed_are_restored() {
        let state = b"\0\0\0\0PATH=/profile\0ONE=request\0MULTI=a\nb=c\0_=/usr/bin/env\0PWD=/tmp\0\
            OLDPWD=/\0CODEX_THREAD_ID=1\0OUTPOST_TOKEN=1\0outpost_x=1\0NODE_REPL_AUTH_TOKEN=1\0\
            BASH_FUNC_f%%=() {  :\n}\0=1\0bad\0EMPTY=\0";
        let given = pairs(&[("PATH", "/server"), ("ONE", "request")]);
        let restored = |kind| {
            ShellState::parse(kind, state, &given)
                .expect("complete")
                .env
        };
        let mut expected = pairs(&[("PATH", "/profile"), ("MULTI", "a\nb=c"), ("EMPTY", "")]);
        assert_eq!(restored(ShellKind::Bash), expected);
        expected.insert(2, ("BASH_FUNC_f%%".into(), "() {  :\n}".into()));
        assert_eq!(restored(ShellKind::Sh), expected);
    }
}
