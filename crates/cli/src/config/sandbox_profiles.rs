//! Sandbox profiles, as written in a file.
//!
//! ```toml
//! [sandbox.profiles.build]
//! network = "enabled"
//! files = { ":root" = "read", ":project_roots" = "write", "**/*.pem" = "deny" }
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use outpost_engine::sandbox::{
    Access, Network,
    policy::{Entry, EntryPath, FileSystem, Profile, Profiles, Restricted},
};
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

use super::Config;

const UNRESTRICTED: &str = "unrestricted";

impl Config {
    /// Sandbox profiles by name.
    pub(crate) fn profiles(&self) -> Profiles {
        Profiles {
            default: self.sandbox.default_profile.clone(),
            configured: self.sandbox.profiles.clone(),
        }
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Profile>, D::Error> {
    profiles(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn serialize<S: Serializer>(
    profiles: &BTreeMap<String, Profile>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        profiles
            .iter()
            .map(|(name, profile)| (name, table(profile))),
    )
}

fn profiles(value: &Value) -> anyhow::Result<BTreeMap<String, Profile>> {
    const EXPECTED: &str =
        "expected a table of profiles, such as { name = { files = { \":root\" = \"read\" } } }";
    let tables = value.as_object().context(EXPECTED)?;
    let profiles = tables.iter().map(|(name, value)| {
        ensure!(
            !name.is_empty() && !name.starts_with(':'),
            "expected profile names that aren't empty and don't begin with a colon"
        );
        Ok((name.clone(), profile(value.as_object().context(EXPECTED)?)?))
    });
    profiles.collect()
}

fn profile(members: &Map<String, Value>) -> anyhow::Result<Profile> {
    let known = ["files", "network", "glob_scan_max_depth"];
    ensure!(
        members.keys().all(|name| known.contains(&&**name)),
        "expected only files, network and glob_scan_max_depth in a profile"
    );
    let depth = members.get("glob_scan_max_depth").map(|depth| {
        let depth = depth.as_u64();
        depth.context("expected a whole number for glob_scan_max_depth")
    });
    let glob_scan_max_depth = depth.transpose()?;
    let (network, network_policy) = match members.get("network") {
        None => (Network::Restricted, None),
        Some(value) => match (Network::deserialize(value), value.as_str()) {
            (Ok(network), _) => (network, None),
            (Err(_), Some(policy)) => (Network::Restricted, Some(policy.to_owned())),
            (Err(_), None) => {
                bail!("expected restricted, enabled, or the name of a network policy")
            }
        },
    };
    let file_system = match members.get("files") {
        Some(Value::String(word)) if word == UNRESTRICTED => FileSystem::Unrestricted,
        Some(Value::Object(files)) => FileSystem::Restricted(Restricted {
            entries: files.iter().map(entry).collect::<Result<_, _>>()?,
            glob_scan_max_depth,
        }),
        _ => bail!(
            "expected files = \"unrestricted\" or a table such as files = {{ \":root\" = \"read\" }} in a profile"
        ),
    };
    Ok(Profile {
        file_system,
        network,
        network_policy,
    })
}

fn entry((path, access): (&String, &Value)) -> anyhow::Result<Entry> {
    let path: EntryPath = path.parse()?;
    let access = access.as_str().and_then(Access::from_name);
    let access = access.context("expected one of read, write, deny")?;
    let path = match path {
        // Patterns can't grant, so brackets and braces of a grant are part of a file name.
        EntryPath::GlobPattern { pattern } if access != Access::Deny => {
            ensure!(
                is_literal_path(&pattern),
                "expected \"deny\" for a pattern, which can't grant access"
            );
            EntryPath::Path {
                path: pattern.into(),
            }
        }
        path => path,
    };
    Ok(Entry::new(path, access))
}

/// Returns whether a text that parses as a pattern can also be a single path.
fn is_literal_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['*', '?', '\\'])
}

/// The profile as written in a file.
fn table(profile: &Profile) -> Value {
    let mut table = match &profile.network_policy {
        Some(policy) => json!({ "network": policy }),
        None => json!({"network": profile.network}),
    };
    match &profile.file_system {
        FileSystem::Unrestricted => table["files"] = UNRESTRICTED.into(),
        FileSystem::Restricted(files) => {
            let entries = files.entries.iter();
            let entries = entries.map(|entry| (entry.path.to_string(), entry.access.as_str()));
            table["files"] = json!(entries.collect::<BTreeMap<_, _>>());
            if let Some(depth) = files.glob_scan_max_depth {
                table["glob_scan_max_depth"] = depth.into();
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn serialized_profiles_deserialize_to_the_same() {
        let value = json!({
            "build": {
                "network": "enabled",
                "glob_scan_max_depth": 3,
                "files": {
                    ":root": "read", ":project_roots": "write", ":project_roots/docs": "read",
                    "/srv/cache": "write", "**/*.pem": "deny",
                    "/srv/x[1]": "write", "/srv/y[1]": "deny", "/srv/z\\[1\\]": "deny",
                },
            },
            "open": {"files": "unrestricted", "network": "restricted"},
            "managed": {"files": "unrestricted", "network": "packages"},
        });
        let read = profiles(&value).unwrap();
        let written = serialize(&read, serde_json::value::Serializer).unwrap();
        assert_eq!(written, value);
        let FileSystem::Restricted(files) = &read["build"].file_system else {
            panic!("it is restricted");
        };
        let granted = Entry::path("/srv/x[1]", Access::Write);
        assert!(files.entries.contains(&granted), "{files:?}");
    }

    #[test]
    fn invalid_profiles_are_rejected_with_the_reason() {
        let messages: Vec<String> = [
            json!("ci"),
            json!({":ci": {"files": {}}}),
            json!({"ci": {}}),
            json!({"ci": {"files": "all"}}),
            json!({"ci": {"files": {}, "net": true}}),
            json!({"ci": {"files": {}, "network": true}}),
            json!({"ci": {"files": {}, "glob_scan_max_depth": "deep"}}),
            json!({"ci": {"files": {":home": "read"}}}),
            json!({"ci": {"files": {"/x": "execute"}}}),
            json!({"ci": {"files": {"**/x": "read"}}}),
            json!({"ci": {"files": {"x[1]": "read"}}}),
        ]
        .iter()
        .map(|value| profiles(value).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        expected a table of profiles, such as { name = { files = { ":root" = "read" } } }
        expected profile names that aren't empty and don't begin with a colon
        expected files = "unrestricted" or a table such as files = { ":root" = "read" } in a profile
        expected files = "unrestricted" or a table such as files = { ":root" = "read" } in a profile
        expected only files, network and glob_scan_max_depth in a profile
        expected restricted, enabled, or the name of a network policy
        expected a whole number for glob_scan_max_depth
        expected an absolute path, a pattern, or one of :root, :minimal, :project_roots, :tmpdir, :slash_tmp
        expected one of read, write, deny
        expected "deny" for a pattern, which can't grant access
        expected "deny" for a pattern, which can't grant access
        "#);
    }
}
