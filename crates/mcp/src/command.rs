//! What to run as a server.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use outpost_client::{EnvPolicy, Inherit, Start};

/// The names that `inherit: core` stands for. Where more is wanted of the
/// executor's environment they have to be named beside it.
const CORE: [&str; 11] = [
    "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME",
    "USER",
];

/// A program that speaks MCP over its standard input and output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables with their values.
    pub env: BTreeMap<String, OsString>,
    /// Variables whose values are taken from an environment.
    pub env_vars: Vec<EnvVar>,
    /// Where to run it.
    pub cwd: Option<PathBuf>,
}

/// A variable that is handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Whose environment it is taken from.
    pub source: EnvSource,
}

/// Whose environment a variable is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvSource {
    /// This program's.
    #[default]
    Local,
    /// The executor's.
    Remote,
}

/// Why a command can't be started anywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The wire carries text.
    #[error("{what} is not Unicode text")]
    NotUnicode {
        /// Which part of it.
        what: Part,
    },
    /// There is no executor whose environment could be asked.
    #[error("variable {name} is to be taken from the executor, but the server runs here")]
    NoExecutor {
        /// The variable.
        name: String,
    },
}

/// A part of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Part {
    /// The program.
    #[error("the command")]
    Program,
    /// One of the arguments, counted from 1.
    #[error("argument {0}")]
    Argument(usize),
    /// The value of a variable.
    #[error("variable {0}")]
    Variable(String),
    /// The directory.
    #[error("the working directory")]
    Directory,
}

impl Command {
    /// A program without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Command {
            program: program.into(),
            ..Command::default()
        }
    }

    /// What to start here, with what is handed on by `variable`.
    pub(crate) fn start_here(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Start, CommandError> {
        if let Some(remote) = self.executor_variables().next() {
            let name = remote.to_owned();
            return Err(CommandError::NoExecutor { name });
        }
        self.start(variable)
    }

    /// What to start on an executor: with its own core variables and the named
    /// ones, and with what is handed on from here by `variable`.
    pub fn start_there(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Start, CommandError> {
        self.start(variable)
    }

    fn start(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Start, CommandError> {
        let mut argv = vec![text(&self.program, || Part::Program)?];
        for (index, arg) in self.args.iter().enumerate() {
            argv.push(text(arg, || Part::Argument(index + 1))?);
        }
        let mut start = Start::new(argv).stdin().env_policy(self.policy());
        for named in &self.env_vars {
            // What isn't there here isn't there either.
            if named.source == EnvSource::Local
                && let Some(value) = variable(&named.name)
            {
                let value = text(&value, || Part::Variable(named.name.clone()))?;
                start = start.env(&named.name, value);
            }
        }
        for (name, value) in &self.env {
            start = start.env(name, text(value, || Part::Variable(name.clone()))?);
        }
        if let Some(cwd) = &self.cwd {
            text(cwd.as_os_str(), || Part::Directory)?;
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
        let mut named = self.executor_variables().map(str::to_owned).peekable();
        if named.peek().is_some() {
            policy.inherit = Inherit::All;
            policy.include_only = CORE.map(str::to_owned).into_iter().chain(named).collect();
        }
        policy
    }

    fn executor_variables(&self) -> impl Iterator<Item = &str> {
        let remote = |named: &&EnvVar| named.source == EnvSource::Remote;
        let named = self.env_vars.iter().filter(remote);
        named.map(|named| named.name.as_str())
    }
}

fn text(value: &OsStr, part: impl Fn() -> Part) -> Result<String, CommandError> {
    let text = value.to_str().map(str::to_owned);
    text.ok_or_else(|| CommandError::NotUnicode { what: part() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn broken() -> OsString {
        OsString::from_vec(vec![b'a', 0xff])
    }

    fn local(name: &str) -> EnvVar {
        EnvVar {
            name: name.to_owned(),
            source: EnvSource::Local,
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        let right = Command::new("server");
        let wrong = [
            Command::new(broken()),
            Command {
                args: vec!["a".into(), broken()],
                ..right.clone()
            },
            Command {
                env: BTreeMap::from([("KEY".to_owned(), broken())]),
                ..right.clone()
            },
            Command {
                env_vars: vec![local("HANDED")],
                ..right.clone()
            },
            Command {
                cwd: Some(broken().into()),
                ..right
            },
        ];
        let words = wrong.map(|command| {
            let start = command.start_there(|_| Some(broken()));
            start.unwrap_err().to_string()
        });
        assert_eq!(
            words,
            [
                "the command is not Unicode text",
                "argument 2 is not Unicode text",
                "variable KEY is not Unicode text",
                "variable HANDED is not Unicode text",
                "the working directory is not Unicode text",
            ]
        );
    }

    #[test]
    fn only_the_core_is_inherited_unless_more_is_named() {
        let mut command = Command::new("server");
        let policy = command.policy();
        assert_eq!(policy.inherit, Inherit::Core);
        assert!(policy.ignore_default_excludes);
        assert!(policy.include_only.is_empty());

        command.env_vars = vec![EnvVar {
            name: "API_KEY".to_owned(),
            source: EnvSource::Remote,
        }];
        let policy = command.policy();
        assert_eq!(policy.inherit, Inherit::All);
        assert!(policy.ignore_default_excludes);
        assert_eq!(policy.include_only.len(), CORE.len() + 1);
        assert!(policy.include_only.contains(&"API_KEY".to_owned()));
        let here = command.start_here(|_| None).unwrap_err();
        assert!(here.to_string().contains("API_KEY"), "{here}");
    }
}
