//! A file as a source.

use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, Layer, Setting, Source, error::Words, nearest::nearest};

/// What the text of a file says.
pub(super) fn layer(
    table: &'static [Setting],
    source: Source,
    file: &Path,
    text: &str,
) -> Result<Layer, ConfigError> {
    let document = DeTable::parse(text).map_err(|why| ConfigError::Syntax {
        file: file.to_owned(),
        line: line_of(text, why.span().map_or(0, |span| span.start)),
        why,
    })?;
    let mut reader = Reader {
        table,
        file,
        text,
        layer: Layer::new(source),
    };
    reader.walk("", document.get_ref())?;
    Ok(reader.layer)
}

/// One value, written as in a file.
pub(super) fn value(text: &str) -> Option<Value> {
    DeValue::parse(text)
        .ok()
        .map(|value| plain(value.get_ref()))
}

struct Reader<'a> {
    table: &'static [Setting],
    file: &'a Path,
    text: &'a str,
    layer: Layer,
}

impl Reader<'_> {
    fn walk(&mut self, prefix: &str, members: &DeTable<'_>) -> Result<(), ConfigError> {
        // In the order of the file, so that the first mistake is reported first.
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in members {
            let line = line_of(self.text, key.span().start);
            let key = format!("{prefix}{}", key.get_ref());
            let setting = self.table.iter().find(|setting| setting.key == key);
            if let Some(setting) = setting {
                let written = self.text.get(value.span()).unwrap_or_default();
                self.take(setting, &plain(value.get_ref()), written, line)?;
                continue;
            }
            let inside = format!("{key}.");
            let is_table = |setting: &Setting| setting.key.starts_with(&inside);
            match value.get_ref() {
                _ if !self.table.iter().any(is_table) => return Err(self.unknown(&key, line)),
                DeValue::Table(members) => self.walk(&inside, members)?,
                _ => {
                    return Err(ConfigError::NotATable {
                        file: self.file.to_owned(),
                        line,
                        key: Words::new(&key),
                    });
                }
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        setting: &'static Setting,
        value: &Value,
        written: &str,
        line: usize,
    ) -> Result<(), ConfigError> {
        let said = self.layer.say(setting, value, Some(line));
        said.map_err(|why| ConfigError::InFile {
            file: self.file.to_owned(),
            line,
            key: setting.key,
            value: Words::as_written(setting, value, written),
            why,
        })
    }

    fn unknown(&self, key: &str, line: usize) -> ConfigError {
        let known = self.table.iter().map(|setting| setting.key.to_owned());
        ConfigError::UnknownKey {
            file: self.file.to_owned(),
            line,
            key: Words::new(key),
            nearest: nearest(key, known),
        }
    }
}

/// The number of the line at which this byte is.
fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The value without its places. What no setting can have, such as a date or a
/// number beyond all bounds, becomes `null`, which is wrong for all of them.
fn plain(value: &DeValue<'_>) -> Value {
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
        DeValue::Array(items) => items.iter().map(|item| plain(item.get_ref())).collect(),
        DeValue::Table(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref())))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::SETTINGS;

    fn read(text: &str) -> Result<Layer, ConfigError> {
        layer(SETTINGS, Source::Default, Path::new("o.toml"), text)
    }

    #[test]
    fn values_are_taken_with_their_lines_in_the_form_in_which_they_are_shown() {
        let text = "# a comment\nretain_bytes = 65536\nlog.level = \"warn\"\n\n\
            [shell_environment_policy]\nset = { A = \"b\" }\n";
        let said: Vec<_> = read(text)
            .unwrap()
            .entries
            .into_iter()
            .map(|entry| (entry.setting.key, entry.value, entry.line))
            .collect();
        assert_eq!(
            said,
            [
                ("retain_bytes", json!("64KiB"), Some(2)),
                ("log.level", json!("warn"), Some(3)),
                ("shell_environment_policy.set", json!({"A": "b"}), Some(6)),
            ]
        );
    }

    #[test]
    fn mistakes_name_file_line_and_key() {
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
        let words: String = texts
            .iter()
            .map(|text| format!("{}\n", read(text).unwrap_err()))
            .collect();
        insta::assert_snapshot!(words, @r#"
        o.toml:2: unknown key retain_byte; did you mean retain_bytes?
        o.toml:2: unknown key log_level; did you mean log.level?
        o.toml:3: unknown key log.colour
        o.toml:1: unknown key nothing
        o.toml:1: cannot use log: expected a table, as in [log]
        o.toml:1: cannot use retain_bytes = "lots": expected a size such as 65536, "64KiB" or "1MiB"
        o.toml:1: cannot use max_sessions = "12": expected a whole number greater than 0
        o.toml:1: cannot use max_sessions = 1.5: expected a whole number greater than 0
        o.toml:1: cannot use session_ttl = -30: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: cannot use session_ttl = 1.5: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: cannot use closed_retention = 1979-05-27: expected a time such as 30, "30s", "500ms" or "1h30m"
        o.toml:1: cannot use listen = "stdio://": expected a list with at least one URL, such as ["ws://127.0.0.1:0"]
        o.toml:1: cannot use listen = []: expected a list with at least one URL, such as ["ws://127.0.0.1:0"]
        o.toml:1: cannot use listen = ["http://x"]: expected ws://IP:PORT, unix:///absolute/path or stdio://
        o.toml:1: cannot use trees = "forest": expected one of auto, cgroup, keeper, group
        o.toml:2: cannot use log.level = "loud": expected one of off, error, warn, info, debug, trace, or a filter such as outpost_server=debug
        o.toml:1: cannot use shell_environment_policy.inherit = true: expected one of all, core, none
        o.toml:1: cannot use shell_environment_policy.set = {"A":"********"}: expected a table of strings, such as { NAME = "value" }
        o.toml:2: duplicate key
        o.toml:3: string values must be quoted, expected literal string
        "#);
    }

    #[test]
    fn a_secret_is_not_repeated() {
        let secret = read("shell_environment_policy.set = { A = [\"hush\"] }").unwrap_err();
        let broken = read("shell_environment_policy.set = { A = \"hush }").unwrap_err();
        for error in [secret, broken] {
            let words = format!("{:#}", anyhow::Error::from(error));
            assert!(!words.contains("hush"), "{words}");
        }
    }

    #[test]
    fn numbers_may_be_written_in_all_ways_of_the_format() {
        for text in [
            "65_536",
            "+65536",
            "0x1_0000",
            "0o200000",
            "0b1_00000000_00000000",
        ] {
            let layer = read(&format!("retain_bytes = {text}")).unwrap();
            assert_eq!(layer.entries[0].value, json!("64KiB"), "{text}");
        }
        for text in ["-1", "1e3", "inf", "99999999999999999999999"] {
            assert!(read(&format!("retain_bytes = {text}")).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_in_a_file_is_taken_or_named(text in r#"[a-z_.=\[\]{}"'0-9,# \n\r\\-]{0,60}"#) {
            if let Err(error) = read(&text) {
                let words = error.to_string();
                proptest::prop_assert!(words.starts_with("o.toml:"), "{}", words);
                proptest::prop_assert!(!words.contains('\n'), "{}", words);
            }
        }
    }

    #[test]
    fn somebody_elses_words_stay_in_one_line_of_bounded_length() {
        let key = "k".repeat(10_000);
        let words = read(&format!("\"a\\u001b[2J\\n{key}\" = 1"))
            .unwrap_err()
            .to_string();
        assert!(words.len() < 300, "{words}");
        assert!(!words.contains(char::is_control), "{words:?}");
    }
}
