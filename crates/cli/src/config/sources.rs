//! Reads flags, environment variables and files, each into a [`Layer`]. An error is one line that
//! names the place to correct, without secrets.

use std::{ffi::OsString, path::Path};

use anyhow::{Context, anyhow, bail};
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind,
    parser::ValueSource,
};
use outpost_server::ConfigSource as Source;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{
    Layer, SETTINGS,
    files::CONFIG_VARIABLE,
    settings::{Setting, VARIABLE_PREFIX, nearest},
    values::mask,
};
use crate::endpoint::{HOST_VARIABLE, TOKEN_VARIABLE};

/// Variables with our prefix that aren't settings.
const OTHER_VARIABLES: &[&str] = &[CONFIG_VARIABLE, TOKEN_VARIABLE, HOST_VARIABLE];
/// Maximum number of characters of an excerpt.
const MAX_EXCERPT: usize = 80;

fn flag(setting: &'static Setting) -> Option<Arg> {
    let flag = setting.flag.clone()?;
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let defaults = match &setting.default {
        Value::Array(items) => items.iter().map(word).collect(),
        value => vec![word(value)],
    };
    let is_choice = !flag.get_possible_values().is_empty();
    let flag = flag
        .required(false)
        .action(if setting.default.is_array() {
            ArgAction::Append
        } else {
            ArgAction::Set
        })
        .default_values(defaults);
    if setting.default.is_boolean() {
        let switch = flag.num_args(0..=1).require_equals(true);
        return Some(
            switch
                .default_missing_value("true")
                .hide_default_value(true),
        );
    }
    if is_choice {
        return Some(flag);
    }
    let flag = flag.hide_default_value(setting.default == "");
    Some(flag.value_parser(move |text: &str| {
        let value = setting.parse_words(&[text.to_owned()]);
        setting.check(&value).map(|_| text.to_owned())
    }))
}

/// The flags of all settings that have one, as a layer.
#[derive(Debug)]
pub(crate) struct SettingFlags(pub(crate) Layer);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().filter_map(flag).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let layer = flags_layer(matches);
        let error = |error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n"));
        layer.map(SettingFlags).map_err(error)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Reads the flags that were given, without defaults.
fn flags_layer(matches: &ArgMatches) -> anyhow::Result<Layer> {
    let mut layer = Layer::new(Source::CommandLine);
    for setting in SETTINGS.iter() {
        let Some(flag) = setting.flag_name() else {
            continue;
        };
        if matches.value_source(&setting.key) != Some(ValueSource::CommandLine) {
            continue;
        }
        let words = matches.get_raw(&setting.key).into_iter().flatten();
        let words: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let value = setting.parse_words(&words);
        let shown = value_excerpt(setting, &value);
        let set = layer.set(setting, value, None);
        set.map_err(|why| anyhow!("invalid value for --{flag} {shown}: {why}"))?;
    }
    Ok(layer)
}

/// Reads the environment variables. A name close to one of ours is an error, since the
/// user believes that it sets something. Other names with our prefix are ignored.
pub(super) fn environment_layer(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> anyhow::Result<Layer> {
    let mut layer = Layer::new(Source::Environment);
    for (name, value) in variables {
        let name = name.to_string_lossy();
        if !name.starts_with(VARIABLE_PREFIX) || OTHER_VARIABLES.contains(&&*name) {
            continue;
        }
        let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
            match nearest_variable(&name) {
                None => continue,
                Some(nearest) => bail!(
                    "unknown variable {} in the environment; did you mean {nearest}?",
                    excerpt(&name)
                ),
            }
        };
        let text = value.to_str().with_context(|| {
            format!("invalid value for {name} of the environment: it is not UTF-8 text")
        })?;
        let set = layer.set(setting, setting.parse_text(text), None);
        set.map_err(|why| {
            let shown = value_excerpt(setting, &text.into());
            anyhow!("invalid value for {name}={shown} of the environment: {why}")
        })?;
    }
    Ok(layer)
}

/// The known variable that is closest to this name. The common prefix doesn't count.
fn nearest_variable(name: &str) -> Option<String> {
    let known = SETTINGS.iter().map(Setting::variable);
    let known = known.chain([CONFIG_VARIABLE.to_owned()]);
    let rest = |name: &str| name.strip_prefix(VARIABLE_PREFIX).map(str::to_owned);
    let nearest = nearest(&rest(name)?, known.filter_map(|name| rest(&name)))?;
    Some(format!("{VARIABLE_PREFIX}{nearest}"))
}

/// Reads the text of a file.
pub(super) fn file_layer(source: Source, file: &Path, text: &str) -> anyhow::Result<Layer> {
    let document = DeTable::parse(text).map_err(|why| {
        let line = line_number(text, why.span().map_or(0, |span| span.start));
        // Without the excerpt that the parser adds, which may contain a secret.
        let message: Vec<_> = why.message().lines().collect();
        anyhow!("{}:{line}: {}", file.display(), message.join(", "))
    })?;
    let mut layer = Layer::new(source);
    read_table(&mut layer, file, text, "", document.get_ref())?;
    Ok(layer)
}

fn read_table(
    layer: &mut Layer,
    file: &Path,
    text: &str,
    prefix: &str,
    members: &DeTable<'_>,
) -> anyhow::Result<()> {
    // In the order of the file, so that the first error is reported first.
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in members {
        let line = line_number(text, key.span().start);
        let at = format!("{}:{line}", file.display());
        let key = format!("{prefix}{}", key.get_ref());
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            let parsed = to_json(value.get_ref());
            let shown = if setting.default.is_object() {
                value_excerpt(setting, &parsed)
            } else {
                excerpt(text.get(value.span()).unwrap_or_default())
            };
            let set = layer.set(setting, parsed, Some(line));
            set.map_err(|why| anyhow!("{at}: invalid value for {key} = {shown}: {why}"))?;
            continue;
        }
        let inside = format!("{key}.");
        let shown = excerpt(&key);
        let mut keys = SETTINGS.iter().map(|setting| setting.key.clone());
        if !keys.clone().any(|known| known.starts_with(&inside)) {
            let hint = nearest(&key, &mut keys).map(|name| format!("; did you mean {name}?"));
            bail!("{at}: unknown key {shown}{}", hint.unwrap_or_default());
        }
        let DeValue::Table(members) = value.get_ref() else {
            bail!("{at}: invalid value for {shown}: expected a table, as in [{shown}]");
        };
        read_table(layer, file, text, &inside, members)?;
    }
    Ok(())
}

/// The user's text on one line of bounded length.
fn excerpt(text: &str) -> String {
    let shown = text.chars().take(MAX_EXCERPT);
    let shown = shown.map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let more = text.chars().nth(MAX_EXCERPT).map(|_| '…');
    shown.chain(more).collect()
}

/// An excerpt of a value. The values in a table are masked, since they may be secrets.
fn value_excerpt(setting: &Setting, value: &Value) -> String {
    if setting.default.is_object() {
        excerpt(&mask(value).to_string())
    } else {
        excerpt(&value.to_string())
    }
}

/// Parses a single TOML value.
pub(super) fn parse_toml_value(text: &str) -> Option<Value> {
    let value = DeValue::parse(text).ok()?;
    Some(to_json(value.get_ref()))
}

/// The number of the line that contains the byte at `offset`.
fn line_number(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Converts a TOML value. A date or an out-of-range number becomes `null`, which is
/// invalid for every setting.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(_) => Value::Null,
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(members) => {
            let members = members.iter();
            let members =
                members.map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())));
            Value::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use serde_json::json;

    use super::*;

    fn read_text(text: &str) -> anyhow::Result<Layer> {
        file_layer(Source::Default, Path::new("o.toml"), text)
    }

    #[test]
    fn file_values_have_lines_and_normal_form() {
        let text = "# a comment\nretain_bytes = 65536\nlog.level = \"warn\"\n\n\
            [shell_environment_policy]\nset = { A = \"b\" }\n";
        let entries: Vec<_> = read_text(text)
            .unwrap()
            .entries
            .into_iter()
            .map(|entry| (entry.setting.key.as_str(), entry.shown, entry.line))
            .collect();
        assert_eq!(
            entries,
            [
                ("retain_bytes", json!("64KiB"), Some(2)),
                ("log.level", json!("warn"), Some(3)),
                (
                    "shell_environment_policy.set",
                    json!({"A": "********"}),
                    Some(6)
                ),
            ]
        );
    }

    #[test]
    fn file_errors_name_file_line_and_key() {
        let texts = [
            "\nretain_byte = 1",
            "max_sessions = 1\nlog_level = \"info\"",
            "[log]\nlevel = \"info\"\ncolour = true",
            "[nothing]\nx = 1",
            "log = 3",
            "retain_bytes = \"lots\"",
            "max_sessions = \"12\"",
            "max_sessions = 1.5",
            "session_ttl = -30",
            "session_ttl = 1.5",
            "closed_retention = 1979-05-27",
            "listen = \"stdio://\"",
            "listen = []",
            "listen = [\"http://x\"]",
            "trees = \"forest\"",
            "[log]\nlevel = \"loud\"",
            "shell_environment_policy.inherit = true",
            "shell_environment_policy.set = { A = 1 }",
            "max_sessions = 1\nmax_sessions = 2",
            "\n\nretain_bytes = ",
        ];
        let messages: String = texts
            .iter()
            .map(|text| format!("{}\n", read_text(text).unwrap_err()))
            .collect();
        insta::assert_snapshot!(messages, @r#"
        o.toml:2: unknown key retain_byte; did you mean retain_bytes?
        o.toml:2: unknown key log_level; did you mean log.level?
        o.toml:3: unknown key log.colour
        o.toml:1: unknown key nothing
        o.toml:1: invalid value for log: expected a table, as in [log]
        o.toml:1: invalid value for retain_bytes = "lots": expected a size such as 65536, "64KiB" or "1MiB"
        o.toml:1: invalid value for max_sessions = "12": expected a whole number greater than 0
        o.toml:1: invalid value for max_sessions = 1.5: expected a whole number greater than 0
        o.toml:1: invalid value for session_ttl = -30: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: invalid value for session_ttl = 1.5: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: invalid value for closed_retention = 1979-05-27: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: invalid value for listen = "stdio://": expected a list with at least one URL, such as ["ws://127.0.0.1:0"]
        o.toml:1: invalid value for listen = []: expected a list with at least one URL, such as ["ws://127.0.0.1:0"]
        o.toml:1: invalid value for listen = ["http://x"]: expected ws://IP:PORT, wss://IP:PORT, unix:///absolute/path or stdio://
        o.toml:1: invalid value for trees = "forest": expected one of auto, cgroup, subreaper, group
        o.toml:2: invalid value for log.level = "loud": expected one of off, error, warn, info, debug, trace, or a filter such as outpost_server=debug
        o.toml:1: invalid value for shell_environment_policy.inherit = true: expected one of all, core, none
        o.toml:1: invalid value for shell_environment_policy.set = {"A":"********"}: expected a table of strings, such as { NAME = "value" }
        o.toml:2: duplicate key
        o.toml:3: string values must be quoted, expected literal string
        "#);
    }

    #[test]
    fn file_errors_never_contain_secrets() {
        let secret = read_text("shell_environment_policy.set = { A = [\"hush\"] }").unwrap_err();
        let broken = read_text("shell_environment_policy.set = { A = \"hush }").unwrap_err();
        for error in [secret, broken] {
            let message = format!("{error:#}");
            assert!(!message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn every_toml_integer_notation_is_accepted() {
        for text in [
            "65_536",
            "+65536",
            "0x1_0000",
            "0o200000",
            "0b1_00000000_00000000",
        ] {
            let layer = read_text(&format!("retain_bytes = {text}")).unwrap();
            assert_eq!(layer.entries[0].shown, json!("64KiB"), "{text}");
        }
        for text in ["-1", "1e3", "inf", "99999999999999999999999"] {
            assert!(
                read_text(&format!("retain_bytes = {text}")).is_err(),
                "{text}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_accepted_or_rejected_in_one_line(text in r#"[a-z_.=\[\]{}"'0-9,# \n\r\\-]{0,60}"#) {
            if let Err(error) = read_text(&text) {
                let message = error.to_string();
                proptest::prop_assert!(message.starts_with("o.toml:"), "{}", message);
                proptest::prop_assert!(!message.contains('\n'), "{}", message);
            }
        }
    }

    #[test]
    fn excerpts_stay_on_one_line_of_bounded_length() {
        let key = "k".repeat(10_000);
        let message = read_text(&format!("\"a\\u001b[2J\\n{key}\" = 1"))
            .unwrap_err()
            .to_string();
        assert!(message.len() < 300, "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }

    fn read_variables(variables: &[(&str, &str)]) -> Result<Vec<(&'static str, Value)>, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        match environment_layer(variables) {
            Ok(layer) => Ok(layer
                .entries
                .into_iter()
                .map(|entry| (entry.setting.key.as_str(), entry.shown))
                .collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_kind_of_value_has_a_variable_syntax() {
        let variables = [
            ("HOME", "/h"),
            ("OUTPOST_CONFIG", "anything"),
            ("OUTPOST_LISTEN", "stdio://, ws://127.0.0.1:7"),
            ("OUTPOST_RETAIN_BYTES", "65536"),
            ("OUTPOST_MAX_SESSION_TTL", "unlimited"),
            ("OUTPOST_MAX_SESSIONS", "3"),
            ("OUTPOST_LOG_FORMAT", "json"),
            (
                "OUTPOST_SHELL_ENVIRONMENT_POLICY_IGNORE_DEFAULT_EXCLUDES",
                "true",
            ),
            ("OUTPOST_SHELL_ENVIRONMENT_POLICY_EXCLUDE", "[\"A,B\", 'C']"),
            ("OUTPOST_SHELL_ENVIRONMENT_POLICY_INCLUDE_ONLY", ""),
            ("OUTPOST_SHELL_ENVIRONMENT_POLICY_SET", "A=b=c, D="),
        ];
        assert_eq!(
            read_variables(&variables).unwrap(),
            [
                ("listen", json!(["stdio://", "ws://127.0.0.1:7"])),
                ("retain_bytes", json!("64KiB")),
                ("max_session_ttl", json!("unlimited")),
                ("max_sessions", json!(3)),
                ("log.format", json!("json")),
                (
                    "shell_environment_policy.ignore_default_excludes",
                    json!(true)
                ),
                ("shell_environment_policy.exclude", json!(["A,B", "C"])),
                ("shell_environment_policy.include_only", json!([])),
                (
                    "shell_environment_policy.set",
                    json!({"A": "********", "D": "********"})
                ),
            ]
        );
        let secrets = (
            "OUTPOST_SHELL_ENVIRONMENT_POLICY_SET".into(),
            "A=b=c, D=".into(),
        );
        let layer = environment_layer([secrets]).unwrap();
        assert_eq!(layer.entries[0].value, json!({"A": "b=c", "D": ""}));
    }

    #[test]
    fn unrelated_variables_are_ignored() {
        for name in ["SECRET", "TOKEN", "HOME", "URL", "NOTHING_LIKE_IT", ""] {
            let name = format!("OUTPOST_{name}");
            assert_eq!(read_variables(&[(&name, "x")]), Ok(vec![]), "{name}");
        }
        let bytes = OsString::from_vec(b"OUTPOST_\xff\xff\xff\xff\xff".to_vec());
        let layer = environment_layer([(bytes.clone(), bytes)]).unwrap();
        assert!(layer.entries.is_empty());
    }

    #[test]
    fn variable_errors_name_the_variable() {
        let wrong = [
            ("OUTPOST_RETAIN_BYTE", "1"),
            ("OUTPOST_TREE", "auto"),
            ("OUTPOST_CONFIGS", "file"),
            ("OUTPOST_RETAIN_BYTES", "lots"),
            ("OUTPOST_MAX_SESSIONS", "0"),
            ("OUTPOST_TREES", "forest"),
            ("OUTPOST_SHELL_ENVIRONMENT_POLICY_SET", "hush"),
        ];
        let messages: String = wrong
            .iter()
            .map(|pair| format!("{}\n", read_variables(&[*pair]).unwrap_err()))
            .collect();
        insta::assert_snapshot!(messages, @r#"
        unknown variable OUTPOST_RETAIN_BYTE in the environment; did you mean OUTPOST_RETAIN_BYTES?
        unknown variable OUTPOST_TREE in the environment; did you mean OUTPOST_TREES?
        unknown variable OUTPOST_CONFIGS in the environment; did you mean OUTPOST_CONFIG?
        invalid value for OUTPOST_RETAIN_BYTES="lots" of the environment: expected a size such as 65536, "64KiB" or "1MiB"
        invalid value for OUTPOST_MAX_SESSIONS="0" of the environment: expected a whole number greater than 0
        invalid value for OUTPOST_TREES="forest" of the environment: expected one of auto, cgroup, subreaper, group
        invalid value for OUTPOST_SHELL_ENVIRONMENT_POLICY_SET="********" of the environment: expected a table of strings, such as { NAME = "value" }
        "#);
        assert!(!messages.contains("hush"), "{messages}");
        let bytes = OsString::from_vec(vec![0xff]);
        let broken = environment_layer([("OUTPOST_TREES".into(), bytes)]).unwrap_err();
        assert!(broken.to_string().contains("OUTPOST_TREES"), "{broken}");
    }
}
