//! The command line as a source.

use clap::{
    Arg, ArgAction, ArgMatches,
    builder::{PossibleValue, PossibleValuesParser},
    parser::ValueSource,
};

use super::{ConfigError, Layer, Setting, Source, error::Words, spoken::Wrong};

/// The flag of a setting, if it has one.
pub(crate) fn flag(setting: &'static Setting) -> Option<Arg> {
    let (name, value_name) = (setting.flag()?, setting.value_name?);
    let arg = Arg::new(setting.key)
        .long(name)
        .value_name(value_name)
        .help(setting.meaning)
        .action(if setting.field.is_list() {
            ArgAction::Append
        } else {
            ArgAction::Set
        })
        .default_values(default_words(setting));
    let words = setting.field.words();
    if words.is_empty() {
        return Some(arg.value_parser(move |text: &str| checked(setting, text)));
    }
    let words = words
        .into_iter()
        .map(|word| PossibleValue::new(word.name).help(word.meaning));
    Some(arg.value_parser(PossibleValuesParser::new(words)))
}

/// What is built in, as one would write it on the command line.
fn default_words(setting: &Setting) -> Vec<String> {
    let word = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match setting.default() {
        serde_json::Value::Array(items) => items.iter().map(word).collect(),
        value => vec![word(&value)],
    }
}

/// The word again, if the setting can have it for a value.
fn checked(setting: &Setting, text: &str) -> Result<String, Wrong> {
    let value = setting.field.value_of_words(&[text.to_owned()]);
    setting.field.read(&value).map(|_| text.to_owned())
}

/// What was said on the command line, defaults not counted.
pub(crate) fn layer_of_flags(
    table: &'static [Setting],
    matches: &ArgMatches,
) -> Result<Layer, ConfigError> {
    let mut layer = Layer::new(Source::CommandLine);
    for setting in table {
        let Some(flag) = setting.flag() else { continue };
        if matches.value_source(setting.key) != Some(ValueSource::CommandLine) {
            continue;
        }
        let words: Vec<String> = matches
            .get_many::<String>(setting.key)
            .map(|words| words.cloned().collect())
            .unwrap_or_default();
        let value = setting.field.value_of_words(&words);
        layer
            .say(setting, &value, None)
            .map_err(|why| ConfigError::InFlag {
                flag,
                value: Words::of(setting, &value),
                why,
            })?;
    }
    Ok(layer)
}
