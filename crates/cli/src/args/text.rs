//! Values that must be Unicode, because the wire carries only text.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{TypedValueParser, ValueParserFactory},
    error::ErrorKind,
};

use super::run::Variable;

/// Parses any text. An error names the flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text;

impl TypedValueParser for Text {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            let flag = arg.and_then(Arg::get_long).unwrap_or_default();
            refused(command, &format!("the value of --{flag}"))
        })
    }
}

/// Parses a variable. An error names it without its value, which may be a secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableText;

impl ValueParserFactory for Variable {
    type Parser = VariableText;

    fn value_parser() -> VariableText {
        VariableText
    }
}

impl TypedValueParser for VariableText {
    type Value = Variable;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Variable, Error> {
        let Some(text) = value.to_str() else {
            let bytes = value.as_encoded_bytes();
            let name = bytes.split(|byte| *byte == b'=').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            return Err(refused(command, &format!("variable {name}")));
        };
        let parser = |text: &str| text.parse::<Variable>();
        parser.parse_ref(command, arg, OsStr::new(text))
    }
}

fn refused(command: &Command, what: &str) -> Error {
    let message = format!("{what} is not Unicode text");
    Error::raw(ErrorKind::InvalidUtf8, format!("{message}\n")).with_cmd(command)
}
