//! Validates a command and prepares it for `execve`.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use crate::command::{Command, MAX_PASSED_FDS, Stdio, Wrapper};
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::lookup;
use crate::strings::Strings;

/// Everything the child needs, so that it does not have to allocate between clone and `execve`.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// For error messages.
    pub(crate) program: OsString,
    /// For error messages.
    pub(crate) directory: OsString,
    pub(crate) candidates: Strings,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// One string.
    pub(crate) cwd: Strings,
    pub(crate) stdio: Stdio,
    /// Dropped when the child has its copies of the descriptors.
    pub(crate) wrapper: Option<Wrapper>,
}

impl Prepared {
    /// Returns the child's streams and the descriptors passed as 3 and up. `streams` are those of the
    /// wrapped program if there is a wrapper.
    pub(crate) fn child_fds<'a>(
        &'a self,
        streams: [BorrowedFd<'a>; 3],
        null: BorrowedFd<'a>,
    ) -> ([BorrowedFd<'a>; 3], Vec<BorrowedFd<'a>>) {
        let passed = self.wrapper.iter().flat_map(|wrapper| &wrapper.passed);
        let mut passed: Vec<_> = passed.map(|one| one.as_fd()).collect();
        let own = self
            .wrapper
            .as_ref()
            .and_then(|wrapper| wrapper.own.as_ref());
        match own {
            None => (streams, passed),
            Some(own) => {
                passed.extend(streams);
                let held = own.held.as_ref().map_or(null, |held| held.as_fd());
                ([held, null, own.stderr.as_fd()], passed)
            }
        }
    }

    pub(crate) fn new(command: Command) -> Result<Self, SpawnError> {
        let Some(program) = command.argv.first() else {
            let kind = SpawnErrorKind::Arguments;
            return Err(SpawnError::new(kind, "", Cause::NoProgram));
        };
        if let Some(wrapper) = &command.wrapper
            && wrapper.passed.len() > MAX_PASSED_FDS
        {
            let kind = SpawnErrorKind::Descriptors;
            return Err(SpawnError::new(kind, program, Cause::Os(libc::EMFILE)));
        }
        let arg0 = command.arg0.as_ref().unwrap_or(program);
        let mut argv = Strings::default();
        for argument in std::iter::once(arg0).chain(&command.argv[1..]) {
            argv.push(&[argument.as_bytes()])
                .map_err(|_| SpawnError::new(SpawnErrorKind::Arguments, argument, Cause::Nul))?;
        }

        let mut env = Strings::default();
        for (name, value) in &command.env {
            let invalid = |cause| SpawnError::new(SpawnErrorKind::Environment, name, cause);
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(invalid(Cause::Name));
            }
            env.push(&[name.as_bytes(), b"=", value.as_bytes()])
                .map_err(|_| invalid(Cause::Nul))?;
        }

        let path = command.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.as_bytes());
        let candidates = lookup::candidates(program.as_bytes(), path)
            .map_err(|_| SpawnError::new(SpawnErrorKind::Arguments, program, Cause::Nul))?;

        let mut cwd = Strings::default();
        cwd.push(&[command.cwd.as_os_str().as_bytes()])
            .map_err(|_| SpawnError::new(SpawnErrorKind::Directory, &command.cwd, Cause::Nul))?;

        Ok(Self {
            program: program.clone(),
            directory: command.cwd.into_os_string(),
            candidates,
            argv,
            env,
            cwd,
            stdio: command.stdio,
            wrapper: command.wrapper,
        })
    }
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
        assert_eq!(prepared.argv.iter().collect::<Vec<_>>(), [b"-a", &b"b"[..]]);
        assert_eq!(
            prepared.env.iter().collect::<Vec<_>>(),
            [&b"X=1=2"[..], b"PATH=/p"]
        );
        assert_eq!(prepared.candidates.iter().collect::<Vec<_>>(), [b"/p/a"]);
    }
}
