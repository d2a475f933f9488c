//! Profiles, as a file writes them.
//!
//! ```toml
//! [sandbox.profiles.build]
//! network = "enabled"
//! files = { ":root" = "read", ":project_roots" = "write", "**/*.pem" = "deny" }
//! ```

use std::collections::BTreeMap;

use outpost_engine::sandbox::{
    Access, Network,
    policy::{Entry, FileSystem, Place, Profile, Restricted},
};
use serde_json::{Map, Value};

use super::{
    file,
    spoken::{Spoken, Wrong},
};

const EVERYTHING: &str = "unrestricted";
const RESTRICTED: &str = "restricted";
const ENABLED: &str = "enabled";

/// The profiles that somebody configured, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Configured(pub(crate) BTreeMap<String, Profile>);

impl Spoken for Configured {
    fn value_of_text(text: &str) -> Value {
        file::value(text.trim()).unwrap_or(Value::from(text))
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        const EXPECTED: &str =
            "a table of profiles, such as { name = { files = { \":root\" = \"read\" } } }";
        const NAMED: &str = "names of profiles that aren't empty and begin with no colon";
        let table = value.as_object().ok_or(Wrong::Expected(EXPECTED))?;
        let mut profiles = BTreeMap::new();
        for (name, value) in table {
            if name.is_empty() || name.starts_with(':') {
                return Err(Wrong::Expected(NAMED));
            }
            let members = value.as_object().ok_or(Wrong::Expected(EXPECTED))?;
            profiles.insert(name.clone(), profile(members)?);
        }
        Ok(Configured(profiles))
    }

    fn to_value(&self) -> Value {
        let profiles = self.0.iter();
        let profiles = profiles.map(|(name, profile)| (name.clone(), shown(profile)));
        Value::Object(profiles.collect())
    }
}

fn profile(members: &Map<String, Value>) -> Result<Profile, Wrong> {
    const MEMBERS: &str = "files, and perhaps network and glob_scan_max_depth, in a profile";
    const DEPTH: &str = "a whole number for glob_scan_max_depth";
    let known = ["files", "network", "glob_scan_max_depth"];
    if members.keys().any(|name| !known.contains(&&**name)) {
        return Err(Wrong::Expected(MEMBERS));
    }
    let glob_scan_max_depth = match members.get("glob_scan_max_depth") {
        None => None,
        Some(depth) => {
            let depth = depth.as_u64().ok_or(Wrong::Expected(DEPTH))?;
            Some(usize::try_from(depth).unwrap_or(usize::MAX))
        }
    };
    let network = match members.get("network").map(Value::as_str) {
        None | Some(Some(RESTRICTED)) => Network::Restricted,
        Some(Some(ENABLED)) => Network::Enabled,
        Some(_) => return Err(Wrong::OneOf(vec![RESTRICTED, ENABLED])),
    };
    let file_system = match members.get("files") {
        Some(Value::String(word)) if word == EVERYTHING => FileSystem::Unrestricted,
        Some(Value::Object(files)) => FileSystem::Restricted(Restricted {
            entries: files.iter().map(entry).collect::<Result<_, _>>()?,
            glob_scan_max_depth,
        }),
        _ => {
            return Err(Wrong::Expected(
                "files = { \":root\" = \"read\" } and the like, or files = \"unrestricted\", in a profile",
            ));
        }
    };
    Ok(Profile {
        file_system,
        network,
    })
}

fn entry((place, access): (&String, &Value)) -> Result<Entry, Wrong> {
    let place: Place = place.parse()?;
    let access = access.as_str().and_then(Access::of_word);
    let access = access.ok_or(Wrong::OneOf(vec!["read", "write", "deny"]))?;
    // A grant is no pattern, so brackets and braces are part of a name.
    let place = match place {
        Place::Pattern(text) if access != Access::Deny && names_one(&text) => {
            Place::Path(text.into())
        }
        place => place,
    };
    if matches!(place, Place::Pattern(_)) && access != Access::Deny {
        return Err(Wrong::Expected(
            "\"deny\" for a pattern, which can do nothing else",
        ));
    }
    Ok(Entry::new(place, access))
}

/// Whether a text that could be a pattern can also be the path of one thing.
fn names_one(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['*', '?', '\\'])
}

fn shown(profile: &Profile) -> Value {
    let mut members = Map::new();
    match &profile.file_system {
        FileSystem::Unrestricted => {
            members.insert("files".to_owned(), EVERYTHING.into());
        }
        FileSystem::Restricted(files) => {
            let entries = files.entries.iter();
            let entries =
                entries.map(|entry| (entry.place.to_string(), entry.access.word().into()));
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
    fn what_is_shown_can_be_read_again() {
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
        let read = Configured::from_value(&value).unwrap();
        assert_eq!(read.to_value(), value);
        assert_eq!(Configured::from_value(&read.to_value()).unwrap(), read);
        let FileSystem::Restricted(files) = &read.0["build"].file_system else {
            panic!("it is restricted");
        };
        let granted = Entry::new(Place::Path("/srv/x[1]".into()), Access::Write);
        assert!(files.entries.contains(&granted), "{files:?}");
    }

    #[test]
    fn in_a_variable_they_are_written_as_in_a_file() {
        let value = Configured::value_of_text("{ ci = { files = { ':root' = 'read' } } }");
        let read = Configured::from_value(&value).unwrap();
        assert_eq!(read.0["ci"].network, Network::Restricted);
        assert!(Configured::from_value(&Configured::value_of_text("ci")).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        let words: Vec<String> = [
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
        .map(|value| Configured::from_value(value).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(words.join("\n"), @r#"
        expected a table of profiles, such as { name = { files = { ":root" = "read" } } }
        expected names of profiles that aren't empty and begin with no colon
        expected files = { ":root" = "read" } and the like, or files = "unrestricted", in a profile
        expected files = { ":root" = "read" } and the like, or files = "unrestricted", in a profile
        expected files, and perhaps network and glob_scan_max_depth, in a profile
        expected one of restricted, enabled
        expected a whole number for glob_scan_max_depth
        expected an absolute path, a pattern, or one of :root, :minimal, :project_roots, :tmpdir, :slash_tmp
        expected one of read, write, deny
        expected "deny" for a pattern, which can do nothing else
        expected "deny" for a pattern, which can do nothing else
        "#);
    }
}
