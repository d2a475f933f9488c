//! Sandbox profiles, as written in a file.
//!
//! ```toml
//! [sandbox.profiles.build]
//! network = "enabled"
//! files = { ":root" = "read", ":project_roots" = "write", "**/*.pem" = "deny" }
//! ```

use std::collections::BTreeMap;

use outpost_engine::sandbox::{
    Access, Network,
    policy::{Entry, EntryPath, FileSystem, InvalidEntryPath, Profile, Restricted},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

const UNRESTRICTED: &str = "unrestricted";
const RESTRICTED: &str = "restricted";
const ENABLED: &str = "enabled";

/// Configured profiles by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfileTables(pub(crate) BTreeMap<String, Profile>);

/// An invalid profile.
#[derive(Debug, thiserror::Error)]
enum ProfileError {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error(transparent)]
    Path(#[from] InvalidEntryPath),
}

impl<'de> Deserialize<'de> for ProfileTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        profiles(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for ProfileTables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, profile)| (name, table(profile))))
    }
}

fn profiles(value: &Value) -> Result<ProfileTables, ProfileError> {
    const EXPECTED: &str =
        "a table of profiles, such as { name = { files = { \":root\" = \"read\" } } }";
    const NAMES: &str = "profile names that aren't empty and don't begin with a colon";
    let tables = value.as_object().ok_or(ProfileError::Expected(EXPECTED))?;
    let mut profiles = BTreeMap::new();
    for (name, value) in tables {
        if name.is_empty() || name.starts_with(':') {
            return Err(ProfileError::Expected(NAMES));
        }
        let members = value.as_object().ok_or(ProfileError::Expected(EXPECTED))?;
        profiles.insert(name.clone(), profile(members)?);
    }
    Ok(ProfileTables(profiles))
}

fn profile(members: &Map<String, Value>) -> Result<Profile, ProfileError> {
    const MEMBERS: &str = "only files, network and glob_scan_max_depth in a profile";
    const DEPTH: &str = "a whole number for glob_scan_max_depth";
    const NETWORK: &str = "one of restricted, enabled";
    const FILES: &str =
        "files = \"unrestricted\" or a table such as files = { \":root\" = \"read\" } in a profile";
    let known = ["files", "network", "glob_scan_max_depth"];
    if members.keys().any(|name| !known.contains(&&**name)) {
        return Err(ProfileError::Expected(MEMBERS));
    }
    let glob_scan_max_depth = match members.get("glob_scan_max_depth") {
        None => None,
        Some(depth) => Some(depth.as_u64().ok_or(ProfileError::Expected(DEPTH))?),
    };
    let network = match members.get("network").map(Value::as_str) {
        None | Some(Some(RESTRICTED)) => Network::Restricted,
        Some(Some(ENABLED)) => Network::Enabled,
        Some(_) => return Err(ProfileError::Expected(NETWORK)),
    };
    let file_system = match members.get("files") {
        Some(Value::String(word)) if word == UNRESTRICTED => FileSystem::Unrestricted,
        Some(Value::Object(files)) => FileSystem::Restricted(Restricted {
            entries: files.iter().map(entry).collect::<Result<_, _>>()?,
            glob_scan_max_depth,
        }),
        _ => return Err(ProfileError::Expected(FILES)),
    };
    Ok(Profile {
        file_system,
        network,
    })
}

fn entry((path, access): (&String, &Value)) -> Result<Entry, ProfileError> {
    const ACCESS: &str = "one of read, write, deny";
    const PATTERN: &str = "\"deny\" for a pattern, which can't grant access";
    let path: EntryPath = path.parse()?;
    let access = access.as_str().and_then(Access::from_name);
    let access = access.ok_or(ProfileError::Expected(ACCESS))?;
    // Patterns can't grant, so brackets and braces of a grant are part of a file name.
    let path = match path {
        EntryPath::GlobPattern { pattern }
            if access != Access::Deny && is_literal_path(&pattern) =>
        {
            EntryPath::Path {
                path: pattern.into(),
            }
        }
        path => path,
    };
    if matches!(path, EntryPath::GlobPattern { .. }) && access != Access::Deny {
        return Err(ProfileError::Expected(PATTERN));
    }
    Ok(Entry::new(path, access))
}

/// Returns whether a text that parses as a pattern can also be a single path.
fn is_literal_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['*', '?', '\\'])
}

/// The profile as written in a file.
fn table(profile: &Profile) -> Value {
    let mut members = Map::new();
    match &profile.file_system {
        FileSystem::Unrestricted => {
            members.insert("files".to_owned(), UNRESTRICTED.into());
        }
        FileSystem::Restricted(files) => {
            let entries = files.entries.iter();
            let entries =
                entries.map(|entry| (entry.path.to_string(), entry.access.as_str().into()));
            members.insert("files".to_owned(), Value::Object(entries.collect()));
            if let Some(depth) = files.glob_scan_max_depth {
                members.insert("glob_scan_max_depth".to_owned(), depth.into());
            }
        }
    }
    let network = match profile.network {
        Network::Restricted => RESTRICTED,
        Network::Enabled => ENABLED,
    };
    members.insert("network".to_owned(), network.into());
    Value::Object(members)
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
        });
        let read = profiles(&value).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
        let FileSystem::Restricted(files) = &read.0["build"].file_system else {
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
        expected one of restricted, enabled
        expected a whole number for glob_scan_max_depth
        expected an absolute path, a pattern, or one of :root, :minimal, :project_roots, :tmpdir, :slash_tmp
        expected one of read, write, deny
        expected "deny" for a pattern, which can't grant access
        expected "deny" for a pattern, which can't grant access
        "#);
    }
}
