//! A command that has been checked and laid out for `execve`.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use crate::command::{Carrier, Command, MOST_CARRIED, Stdio};
use crate::error::{Cause, SpawnError, SpawnErrorKind};
use crate::lookup;
use crate::strings::Strings;

/// Everything the child needs, so that it has nothing to allocate between clone and exec.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// For messages.
    pub(crate) program: OsString,
    /// For messages.
    pub(crate) directory: OsString,
    pub(crate) candidates: Strings,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// One string.
    pub(crate) cwd: Strings,
    pub(crate) stdio: Stdio,
    /// Let go of when the child has its copies.
    pub(crate) carrier: Option<Carrier>,
}

impl Prepared {
    /// What it gets as its streams and what behind them, where these are the ends of what is meant.
    pub(crate) fn placed<'a>(
        &'a self,
        ends: [BorrowedFd<'a>; 3],
        null: BorrowedFd<'a>,
    ) -> ([BorrowedFd<'a>; 3], Vec<BorrowedFd<'a>>) {
        let passed = self.carrier.iter().flat_map(|carrier| &carrier.passed);
        let mut passed: Vec<_> = passed.map(|one| one.as_fd()).collect();
        let own = self
            .carrier
            .as_ref()
            .and_then(|carrier| carrier.own.as_ref());
        match own {
            None => (ends, passed),
            Some(own) => {
                passed.extend(ends);
                let kept = own.kept.as_ref().map_or(null, |kept| kept.as_fd());
                ([kept, null, own.words.as_fd()], passed)
            }
        }
    }

    pub(crate) fn new(command: Command) -> Result<Self, SpawnError> {
        let Some(program) = command.argv.first() else {
            let kind = SpawnErrorKind::Arguments;
            return Err(SpawnError::new(kind, "", Cause::NoProgram));
        };
        if let Some(carrier) = &command.carrier
            && carrier.passed.len() > MOST_CARRIED
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
            let refused = |cause| SpawnError::new(SpawnErrorKind::Environment, name, cause);
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(refused(Cause::Name));
            }
            env.push(&[name.as_bytes(), b"=", value.as_bytes()])
                .map_err(|_| refused(Cause::Nul))?;
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
            carrier: command.carrier,
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
            carrier: None,
        }
    }

    fn refusal(command: Command) -> SpawnErrorKind {
        match Prepared::new(command) {
            Ok(_) => panic!("the command should have been refused"),
            Err(error) => error.kind(),
        }
    }

    #[test]
    fn refuses_what_a_c_string_cannot_hold() {
        let arguments = SpawnErrorKind::Arguments;
        assert_eq!(refusal(command(&["a", "b\0c"], &[], "/")), arguments);
        assert_eq!(refusal(command(&["a\0"], &[], "/")), arguments);
        assert_eq!(refusal(command(&[], &[], "/")), arguments);
        assert_eq!(
            refusal(command(&["a"], &[], "/\0")),
            SpawnErrorKind::Directory
        );
        let mut hidden = command(&["a\0"], &[], "/");
        hidden.arg0 = Some("b".into());
        assert_eq!(refusal(hidden), arguments);
    }

    #[test]
    fn refuses_names_that_are_none() {
        for pair in [
            ("", "x"),
            ("a=b", "x"),
            ("=", "x"),
            ("a\0", "x"),
            ("a", "\0"),
        ] {
            let kind = refusal(command(&["a"], &[pair], "/"));
            assert_eq!(kind, SpawnErrorKind::Environment, "{pair:?}");
        }
    }

    #[test]
    fn lays_out_what_the_program_will_see() {
        let mut command = command(&["a", "b"], &[("X", "1=2"), ("PATH", "/p")], "/");
        command.arg0 = Some("-a".into());
        let Ok(prepared) = Prepared::new(command) else {
            panic!("the command is fine");
        };
        assert_eq!(prepared.argv.iter().collect::<Vec<_>>(), [b"-a", &b"b"[..]]);
        assert_eq!(
            prepared.env.iter().collect::<Vec<_>>(),
            [&b"X=1=2"[..], b"PATH=/p"]
        );
        assert_eq!(prepared.candidates.iter().collect::<Vec<_>>(), [b"/p/a"]);
    }
}
