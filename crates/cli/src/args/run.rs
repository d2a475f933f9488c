//! `outpost run`.

use std::time::Duration;

use super::{OnAny, Span, text::Text};

/// Arguments of `outpost run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost run -- cargo test                       locally, in a supervised process tree
  outpost run --timeout 30s -- ./flaky.sh         exit code 124 on timeout
  outpost run -t -- htop                          with a terminal
  tar c . | outpost run --on ws://10.0.0.7:7777 -- tar x -C /srv
  outpost run --on 'stdio:ssh build outpost serve --listen stdio://' -- make
  outpost run --detach -- make -j8                prints an id for logs, attach and kill

The exit code is the command's own; 128+N if signal N ended it, 124 on
timeout, 127 if it was not found, 126 if it can't be executed, 255 if the connection
failed for good.")]
pub(crate) struct Run {
    /// Give the command a terminal of the size of this one
    #[arg(short, long)]
    pub(crate) tty: bool,

    /// Forward stdin from the terminal. A file or a pipe is always forwarded
    #[arg(short, long)]
    pub(crate) interactive: bool,

    /// Run it in the background, and print its id. Without --on, on your own server, which is
    /// started if necessary
    #[arg(short, long, conflicts_with_all = ["interactive"])]
    pub(crate) detach: bool,

    /// The working directory; by default this directory, or the server's
    #[arg(long, value_name = "DIR", value_parser = Text)]
    pub(crate) cwd: Option<String>,

    /// Set a variable, or with NAME alone copy its value; may be given more than once
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<Variable>,

    /// End it with its whole process tree after this time
    #[arg(long, value_name = "TIME", value_parser = nonzero_time)]
    pub(crate) timeout: Option<Span>,

    #[command(flatten)]
    pub(crate) on: OnAny,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Rejects a timeout of zero.
fn nonzero_time(text: &str) -> Result<Span, &'static str> {
    match text.parse()? {
        Span(Duration::ZERO) => Err("expected a time greater than 0"),
        span => Ok(span),
    }
}

/// A variable of the command's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// None to copy the local value.
    pub(crate) value: Option<String>,
}

impl std::str::FromStr for Variable {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("expected NAME=VALUE or NAME");
        }
        Ok(Variable {
            name: name.to_owned(),
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_has_a_name_and_an_optional_value() {
        let variable = |text: &str| text.parse::<Variable>().map(|v| (v.name, v.value));
        assert_eq!(variable("A=b=c"), Ok(("A".into(), Some("b=c".into()))));
        assert_eq!(variable("A="), Ok(("A".into(), Some(String::new()))));
        assert_eq!(variable("A"), Ok(("A".into(), None)));
        assert!(variable("=b").is_err());
    }
}
