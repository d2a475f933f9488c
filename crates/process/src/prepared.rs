//! Validates a command and prepares it for `execve`.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use outpost_types::ResourceLimits;

use crate::command::{Command, MAX_PASSED_FDS, Stdio, Wrapper};
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::program::{HasNul, Program, Strings};
use crate::rlimits::Rlimits;
use crate::sys::child_setup::{SessionMode, Stage};

/// Searched if the child has no `PATH`. Unlike `confstr(_CS_PATH)`, which is `/bin:/usr/bin`, it includes
/// locally installed programs. Login shells start with the same value.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Everything the child needs, so that it does not have to allocate between clone and `execve`.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The name of the program, for error messages.
    pub(crate) name: OsString,
    /// The working directory, for error messages.
    pub(crate) directory: OsString,
    pub(crate) program: Program,
    pub(crate) stdio: Stdio,
    /// A cgroup enforces those that need one.
    pub(crate) limits: ResourceLimits,
    /// Dropped when the child has its copies.
    passed: Vec<Arc<OwnedFd>>,
    wrapper: Option<Wrapper>,
}

/// The arguments of `execve`, validated as [`Spawner::spawn`](crate::Spawner::spawn) does. Each field is
/// a sequence of NUL-terminated strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecStrings {
    /// The paths to try, in this order. Relative paths are relative to the working directory.
    pub candidates: Vec<u8>,
    /// The arguments, `argv[0]` first.
    pub argv: Vec<u8>,
    /// The whole environment.
    pub env: Vec<u8>,
}

impl Command {
    /// Validates the command and returns its strings without starting it, for another program that
    /// executes it.
    ///
    /// # Errors
    /// If there is no program, or a string cannot be passed to it.
    pub fn exec_strings(&self) -> Result<ExecStrings, SpawnError> {
        let program = Prepared::new(self.clone())?.program;
        Ok(ExecStrings {
            candidates: program.candidates.bytes().to_vec(),
            argv: program.argv.bytes().to_vec(),
            env: program.env.bytes().to_vec(),
        })
    }
}

impl Prepared {
    pub(crate) fn is_wrapper(&self) -> bool {
        self.wrapper.is_some()
    }

    /// Returns the child's descriptors, from 0 on. `streams` are those of the wrapped program if there
    /// is a wrapper.
    pub(crate) fn child_fds<'a>(
        &'a self,
        streams: [BorrowedFd<'a>; 3],
        null: BorrowedFd<'a>,
    ) -> Vec<BorrowedFd<'a>> {
        let passed = self.passed.iter().map(|one| one.as_fd());
        match &self.wrapper {
            None | Some(Wrapper { own: None }) => streams.into_iter().chain(passed).collect(),
            Some(Wrapper { own: Some(own) }) => {
                let held = own.held.as_ref().map_or(null, |held| held.as_fd());
                let own = [held, null, own.stderr.as_fd()];
                own.into_iter().chain(passed).chain(streams).collect()
            }
        }
    }

    /// The error for a failed step of starting the program.
    pub(crate) fn failed(&self, kind: SpawnErrorKind, cause: impl Into<Cause>) -> SpawnError {
        SpawnError::new(kind, &self.name, cause.into())
    }

    /// The error for a failure of the child.
    pub(crate) fn child_failed(&self, stage: Stage, errno: i32) -> SpawnError {
        let kind = match stage {
            Stage::Group | Stage::Clone => SpawnErrorKind::Clone,
            Stage::Terminal => SpawnErrorKind::Terminal,
            Stage::Descriptors => SpawnErrorKind::Descriptors,
            Stage::Limits => SpawnErrorKind::Limits,
            Stage::Directory => return SpawnError::not_entered(&self.directory, errno),
            Stage::Execute => return SpawnError::not_executed(&self.name, errno),
        };
        self.failed(kind, Cause::Os(errno))
    }

    pub(crate) fn new(command: Command) -> Result<Self, SpawnError> {
        let Some(program) = command.argv.first() else {
            let kind = SpawnErrorKind::Arguments;
            return Err(SpawnError::new(kind, "", Cause::NoProgram));
        };
        if command.passed.len() > MAX_PASSED_FDS {
            let kind = SpawnErrorKind::Descriptors;
            return Err(SpawnError::new(kind, program, Cause::Os(libc::EMFILE)));
        }
        let with_nul = |kind, subject: &OsStr| SpawnError::new(kind, subject, Cause::Nul);
        let arg0 = command.arg0.as_ref().unwrap_or(program);
        let mut argv = Strings::default();
        for argument in std::iter::once(arg0).chain(&command.argv[1..]) {
            let pushed = argv.push(&[argument.as_bytes()]);
            pushed.map_err(|HasNul| with_nul(SpawnErrorKind::Arguments, argument))?;
        }

        let mut env = Strings::default();
        for (name, value) in &command.env {
            let kind = SpawnErrorKind::Environment;
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(SpawnError::new(kind, name, Cause::Name));
            }
            let pushed = env.push(&[name.as_bytes(), b"=", value.as_bytes()]);
            pushed.map_err(|HasNul| with_nul(kind, name))?;
        }

        let path = command.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.as_bytes());
        let candidates = candidates(program.as_bytes(), path)
            .map_err(|HasNul| with_nul(SpawnErrorKind::Arguments, program))?;

        let directory = command.cwd.into_os_string();
        let mut cwd = Strings::default();
        let pushed = cwd.push(&[directory.as_bytes()]);
        pushed.map_err(|HasNul| with_nul(SpawnErrorKind::Directory, &directory))?;

        let session_mode = match (command.stdio, &command.wrapper) {
            (Stdio::Pty { .. }, Some(Wrapper { own: Some(_), .. })) => SessionMode::PassedTerminal,
            (Stdio::Pty { .. }, _) => SessionMode::Terminal,
            (Stdio::Pipes { .. }, Some(_)) => SessionMode::Session,
            (Stdio::Pipes { .. }, None) => SessionMode::Group,
        };
        Ok(Self {
            name: program.clone(),
            directory,
            program: Program {
                candidates,
                argv,
                env,
                cwd,
                session_mode,
                ignore_signals: command.wrapper.is_some(),
                rlimits: Rlimits::default(),
            },
            stdio: command.stdio,
            limits: command.limits,
            passed: command.passed,
            wrapper: command.wrapper,
        })
    }
}

/// Looks up a program in `PATH`, by the rules of `execvp`. Returns the paths to try, in order.
fn candidates(program: &[u8], path: Option<&[u8]>) -> Result<Strings, HasNul> {
    let mut candidates = Strings::default();
    if program.is_empty() || program.contains(&b'/') {
        candidates.push(&[program])?;
        return Ok(candidates);
    }
    for directory in path.unwrap_or(DEFAULT_PATH).split(|byte| *byte == b':') {
        match directory {
            // An empty entry means the working directory.
            [] => candidates.push(&[b"./", program])?,
            [.., b'/'] => candidates.push(&[directory, program])?,
            _ => candidates.push(&[directory, b"/", program])?,
        }
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str], env: &[(&str, &str)], cwd: &str) -> Command {
        let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
        Command {
            argv: argv.iter().map(Into::into).collect(),
            arg0: None,
            cwd: cwd.into(),
            env: env.iter().map(pair).collect(),
            stdio: Stdio::Pipes { stdin: false },
            limits: ResourceLimits::default(),
            passed: Vec::new(),
            wrapper: None,
        }
    }

    fn error_kind(command: Command) -> SpawnErrorKind {
        match Prepared::new(command) {
            Ok(_) => panic!("the command should be rejected"),
            Err(error) => error.kind(),
        }
    }

    #[test]
    fn rejects_nul_bytes() {
        let arguments = SpawnErrorKind::Arguments;
        assert_eq!(error_kind(command(&["a", "b\0c"], &[], "/")), arguments);
        assert_eq!(error_kind(command(&["a\0"], &[], "/")), arguments);
        assert_eq!(error_kind(command(&[], &[], "/")), arguments);
        assert_eq!(
            error_kind(command(&["a"], &[], "/\0")),
            SpawnErrorKind::Directory
        );
        let mut hidden = command(&["a\0"], &[], "/");
        hidden.arg0 = Some("b".into());
        assert_eq!(error_kind(hidden), arguments);
    }

    #[test]
    fn rejects_invalid_variables() {
        for pair in [
            ("", "x"),
            ("a=b", "x"),
            ("=", "x"),
            ("a\0", "x"),
            ("a", "\0"),
        ] {
            let kind = error_kind(command(&["a"], &[pair], "/"));
            assert_eq!(kind, SpawnErrorKind::Environment, "{pair:?}");
        }
    }

    #[test]
    fn prepares_strings_for_execve() {
        let mut command = command(&["a", "b"], &[("X", "1=2"), ("PATH", "/p")], "/");
        command.arg0 = Some("-a".into());
        let Ok(prepared) = Prepared::new(command) else {
            panic!("the command is valid");
        };
        assert_eq!(
            prepared.program.argv.iter().collect::<Vec<_>>(),
            [b"-a", &b"b"[..]]
        );
        assert_eq!(
            prepared.program.env.iter().collect::<Vec<_>>(),
            [&b"X=1=2"[..], b"PATH=/p"]
        );
        assert_eq!(
            prepared.program.candidates.iter().collect::<Vec<_>>(),
            [b"/p/a"]
        );
    }

    fn paths(program: &str, path: Option<&str>) -> Vec<String> {
        let Ok(strings) = candidates(program.as_bytes(), path.map(str::as_bytes)) else {
            panic!("no NUL in {program} or {path:?}");
        };
        strings
            .iter()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect()
    }

    #[test]
    fn slash_skips_search() {
        assert_eq!(paths("./ls", Some("/bin")), ["./ls"]);
        assert_eq!(paths("/x/ls", Some("/bin")), ["/x/ls"]);
        assert_eq!(paths("", Some("/bin")), [""]);
    }

    #[test]
    fn path_is_searched_in_order() {
        assert_eq!(paths("ls", Some("/a:b:/c/")), ["/a/ls", "b/ls", "/c/ls"]);
        assert_eq!(paths("ls", Some(":/a:")), ["./ls", "/a/ls", "./ls"]);
        assert_eq!(paths("ls", Some("")), ["./ls"]);
    }

    #[test]
    fn default_is_used_without_path() {
        assert_eq!(
            paths("ls", None),
            ["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"]
        );
    }
}
