//! What to run, as a model says it.

use std::collections::BTreeMap;

use crate::serve::Mishap;

/// How much of a command is shown where it is only named.
const SHOWN: usize = 200;

/// A command with its surroundings.
#[derive(Debug)]
pub(in crate::serve) struct CommandLine {
    what: What,
    pub(in crate::serve) cwd: Option<String>,
    pub(in crate::serve) env: BTreeMap<String, String>,
}

#[derive(Debug)]
enum What {
    /// For the shell.
    Line(String),
    /// For nobody else.
    Program(Vec<String>),
}

impl CommandLine {
    /// What was asked for, if it was said in one way.
    pub(super) fn of(
        command: Option<String>,
        argv: Option<Vec<String>>,
        cwd: Option<String>,
        env: Option<BTreeMap<String, String>>,
    ) -> Result<Self, Mishap> {
        let what = match (command, argv) {
            (Some(line), None) => What::Line(line),
            (None, Some(argv)) if argv.is_empty() => return Err(Mishap::EmptyArgv),
            (None, Some(argv)) => What::Program(argv),
            (None, None) => return Err(Mishap::NoCommand),
            (Some(_), Some(_)) => return Err(Mishap::TwoCommands),
        };
        Ok(CommandLine {
            what,
            cwd,
            env: env.unwrap_or_default(),
        })
    }

    /// As it is started.
    pub(in crate::serve) fn argv(&self, shell: &str) -> Vec<String> {
        match &self.what {
            What::Line(line) => vec![shell.to_owned(), "-c".to_owned(), line.clone()],
            What::Program(argv) => argv.clone(),
        }
    }

    /// As it is shown, on one line.
    pub(in crate::serve) fn words(&self) -> String {
        let words = match &self.what {
            What::Line(line) => line.clone(),
            What::Program(argv) => argv.join(" "),
        };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: Option<&str>, argv: Option<&[&str]>) -> Result<CommandLine, Mishap> {
        let argv = argv.map(|argv| argv.iter().map(|&arg| arg.to_owned()).collect());
        CommandLine::of(command.map(str::to_owned), argv, None, None)
    }

    #[test]
    fn it_is_said_in_one_way() {
        let line = of(Some("ls | wc"), None).unwrap();
        assert_eq!(line.argv("/bin/bash"), ["/bin/bash", "-c", "ls | wc"]);
        let program = of(None, Some(&["ls", "a b"])).unwrap();
        assert_eq!(program.argv("/bin/bash"), ["ls", "a b"]);
        assert!(matches!(of(None, None), Err(Mishap::NoCommand)));
        assert!(matches!(of(None, Some(&[])), Err(Mishap::EmptyArgv)));
        let both = of(Some("ls"), Some(&["ls"]));
        assert!(matches!(both, Err(Mishap::TwoCommands)));
    }

    #[test]
    fn it_is_shown_on_a_line() {
        let script = of(Some("cd x &&\n  make"), None).unwrap();
        assert_eq!(script.words(), "cd x && make");
        let long = of(Some(&"ä".repeat(1000)), None).unwrap();
        assert_eq!(long.words().chars().count(), SHOWN + 1);
    }
}
