//! The command line of an MCP server.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use outpost_client::{EnvPolicy, Inherit, Start};
use serde::Deserialize;

/// The variables that `inherit: core` selects. They are listed explicitly when further
/// variables of the executor are inherited.
const CORE: [&str; 11] = [
    "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME",
    "USER",
];

/// A program that speaks MCP over stdin and stdout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables with their values.
    pub env: BTreeMap<String, OsString>,
    /// Environment variables to forward.
    pub env_vars: Vec<ForwardedVariable>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
}

/// A forwarded environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardedVariable {
    /// The name of the variable.
    pub name: String,
    /// The environment that provides the value.
    #[serde(default)]
    pub source: EnvSource,
}

/// The environment that provides a forwarded variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvSource {
    /// This process's environment.
    #[default]
    Local,
    /// The executor's environment.
    Remote,
}

/// An invalid command: the protocol carries Unicode only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} is not Unicode text")]
pub struct CommandError {
    /// The part that isn't Unicode.
    pub part: NonUnicodePart,
}

/// A part of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NonUnicodePart {
    /// The program.
    #[error("the command")]
    Program,
    /// An argument, counted from 1.
    #[error("argument {0}")]
    Argument(usize),
    /// The value of an environment variable.
    #[error("variable {0}")]
    Variable(String),
    /// The working directory.
    #[error("the working directory")]
    Directory,
}

impl Command {
    /// Returns a command without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Command {
            program: program.into(),
            ..Command::default()
        }
    }

    /// Builds the start request: the server inherits the executor's core variables and the
    /// named ones. `variable` looks up local environment variables.
    pub fn start(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Start, CommandError> {
        let mut argv = vec![text(&self.program, || NonUnicodePart::Program)?];
        for (index, arg) in self.args.iter().enumerate() {
            argv.push(text(arg, || NonUnicodePart::Argument(index + 1))?);
        }
        let mut start = Start::new(argv).stdin().env_policy(self.policy());
        for named in &self.env_vars {
            // Unset variables stay unset on the executor.
            if named.source == EnvSource::Local
                && let Some(value) = variable(&named.name)
            {
                let value = text(&value, || NonUnicodePart::Variable(named.name.clone()))?;
                start = start.env(&named.name, value);
            }
        }
        for (name, value) in &self.env {
            start = start.env(
                name,
                text(value, || NonUnicodePart::Variable(name.clone()))?,
            );
        }
        if let Some(cwd) = &self.cwd {
            text(cwd.as_os_str(), || NonUnicodePart::Directory)?;
            start = start.cwd(cwd);
        }
        Ok(start)
    }

    fn policy(&self) -> EnvPolicy {
        let mut policy = EnvPolicy {
            inherit: Inherit::Core,
            ignore_default_excludes: true,
            ..EnvPolicy::default()
        };
        let remote = |named: &&ForwardedVariable| named.source == EnvSource::Remote;
        let named = self.env_vars.iter().filter(remote);
        let mut named = named.map(|named| named.name.clone()).peekable();
        if named.peek().is_some() {
            policy.inherit = Inherit::All;
            policy.include_only = CORE.map(str::to_owned).into_iter().chain(named).collect();
        }
        policy
    }
}

fn text(value: &OsStr, part: impl Fn() -> NonUnicodePart) -> Result<String, CommandError> {
    let text = value.to_str().map(str::to_owned);
    text.ok_or_else(|| CommandError { part: part() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn broken() -> OsString {
        OsString::from_vec(vec![b'a', 0xff])
    }

    fn local(name: &str) -> ForwardedVariable {
        ForwardedVariable {
            name: name.to_owned(),
            source: EnvSource::Local,
        }
    }

    #[test]
    fn error_names_the_part_that_is_not_unicode() {
        let valid = Command::new("server");
        let invalid = [
            Command::new(broken()),
            Command {
                args: vec!["a".into(), broken()],
                ..valid.clone()
            },
            Command {
                env: BTreeMap::from([("KEY".to_owned(), broken())]),
                ..valid.clone()
            },
            Command {
                env_vars: vec![local("FORWARDED")],
                ..valid.clone()
            },
            Command {
                cwd: Some(broken().into()),
                ..valid
            },
        ];
        let messages = invalid.map(|command| {
            let start = command.start(|_| Some(broken()));
            start.unwrap_err().to_string()
        });
        assert_eq!(
            messages,
            [
                "the command is not Unicode text",
                "argument 2 is not Unicode text",
                "variable KEY is not Unicode text",
                "variable FORWARDED is not Unicode text",
                "the working directory is not Unicode text",
            ]
        );
    }

    #[test]
    fn inherits_core_and_named_variables() {
        let mut command = Command::new("server");
        let policy = command.policy();
        assert_eq!(policy.inherit, Inherit::Core);
        assert!(policy.ignore_default_excludes);
        assert!(policy.include_only.is_empty());

        command.env_vars = vec![ForwardedVariable {
            name: "API_KEY".to_owned(),
            source: EnvSource::Remote,
        }];
        let policy = command.policy();
        assert_eq!(policy.inherit, Inherit::All);
        assert!(policy.ignore_default_excludes);
        assert_eq!(policy.include_only.len(), CORE.len() + 1);
        assert!(policy.include_only.contains(&"API_KEY".to_owned()));
    }
}
