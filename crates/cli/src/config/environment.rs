//! The environment as a source.

use std::ffi::OsString;

use super::{ConfigError, Layer, Setting, Source, error::Words, nearest::nearest};

const PREFIX: &str = "OUTPOST_";
/// Names of ours that are no settings: who reads each of them is beside it.
const OTHERS: &[&str] = &[
    // The file to read instead of the user's: `load`.
    "OUTPOST_CONFIG",
];

/// What the variables say. One that is nearly a name of ours is a mistake:
/// whoever wrote it believes that something is set. Others that begin like ours
/// are somebody else's business.
pub(super) fn layer(
    table: &'static [Setting],
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Layer, ConfigError> {
    let mut layer = Layer::new(Source::Environment);
    for (name, value) in variables {
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) || OTHERS.contains(&&*name) {
            continue;
        }
        let Some(setting) = table.iter().find(|setting| setting.variable() == name) else {
            match meant(table, &name) {
                None => continue,
                Some(nearest) => {
                    let name = Words::new(&name);
                    return Err(ConfigError::UnknownVariable { name, nearest });
                }
            }
        };
        let text = value.to_str().ok_or_else(|| ConfigError::VariableNotText {
            name: name.to_string(),
        })?;
        let value = setting.field.value_of_text(text);
        layer
            .say(setting, &value, None)
            .map_err(|why| ConfigError::InVariable {
                name: name.to_string(),
                value: Words::of(setting, &text.into()),
                why,
            })?;
    }
    Ok(layer)
}

/// The name of ours that this one is nearly. What all of them begin with says
/// nothing about that.
fn meant(table: &[Setting], name: &str) -> Option<String> {
    let others = OTHERS.iter().map(|name| (*name).to_owned());
    let known = table.iter().map(Setting::variable).chain(others);
    let rest = |name: &str| name.strip_prefix(PREFIX).map(str::to_owned);
    let nearest = nearest(&rest(name)?, known.filter_map(|name| rest(&name)))?;
    Some(format!("{PREFIX}{nearest}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::SETTINGS;

    fn said(variables: &[(&str, &str)]) -> Result<Vec<(&'static str, Value)>, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        match layer(SETTINGS, variables) {
            Ok(layer) => Ok(layer
                .entries
                .into_iter()
                .map(|entry| (entry.setting.key, entry.value))
                .collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_kind_of_value_can_be_said_in_a_variable() {
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
            said(&variables).unwrap(),
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
                ("shell_environment_policy.set", json!({"A": "b=c", "D": ""})),
            ]
        );
    }

    #[test]
    fn variables_of_others_are_not_ours_to_judge() {
        for name in ["SECRET", "TOKEN", "HOME", "URL", "NOTHING_LIKE_IT", ""] {
            let name = format!("OUTPOST_{name}");
            assert_eq!(said(&[(&name, "x")]), Ok(vec![]), "{name}");
        }
        let bytes = OsString::from_vec(b"OUTPOST_\xff\xff\xff\xff\xff".to_vec());
        let layer = layer(SETTINGS, [(bytes.clone(), bytes)]).unwrap();
        assert!(layer.entries.is_empty());
    }

    #[test]
    fn mistakes_name_the_variable() {
        let wrong = [
            ("OUTPOST_RETAIN_BYTE", "1"),
            ("OUTPOST_TREE", "auto"),
            ("OUTPOST_CONFIGS", "file"),
            ("OUTPOST_RETAIN_BYTES", "lots"),
            ("OUTPOST_MAX_SESSIONS", "0"),
            ("OUTPOST_TREES", "forest"),
            ("OUTPOST_SHELL_ENVIRONMENT_POLICY_SET", "hush"),
        ];
        let words: String = wrong
            .iter()
            .map(|pair| format!("{}\n", said(&[*pair]).unwrap_err()))
            .collect();
        insta::assert_snapshot!(words, @r#"
        unknown variable OUTPOST_RETAIN_BYTE in the environment; did you mean OUTPOST_RETAIN_BYTES?
        unknown variable OUTPOST_TREE in the environment; did you mean OUTPOST_TREES?
        unknown variable OUTPOST_CONFIGS in the environment; did you mean OUTPOST_CONFIG?
        cannot use OUTPOST_RETAIN_BYTES="lots" of the environment: expected a size such as 65536, "64KiB" or "1MiB"
        cannot use OUTPOST_MAX_SESSIONS="0" of the environment: expected a whole number greater than 0
        cannot use OUTPOST_TREES="forest" of the environment: expected one of auto, cgroup, keeper, group
        cannot use OUTPOST_SHELL_ENVIRONMENT_POLICY_SET="********" of the environment: expected a table of strings, such as { NAME = "value" }
        "#);
        assert!(!words.contains("hush"), "{words}");
        let bytes = OsString::from_vec(vec![0xff]);
        let broken = layer(SETTINGS, [("OUTPOST_TREES".into(), bytes)]).unwrap_err();
        assert!(broken.to_string().contains("OUTPOST_TREES"), "{broken}");
    }
}
