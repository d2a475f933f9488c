//! Finds members of params that no method knows.
//!
//! Unknown members are ignored, because clients of other versions send more. A misspelt one is not:
//! `"sandBox"` would start a process without its sandbox. The names are collected while a message is
//! vetted, without a further pass over it, and compared with the members in the schema of the method.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::InvalidParams;
use crate::method::messages;
use crate::schema::Message;

/// The number of unknown members of a message that are compared with known ones. It bounds the cost
/// of a hostile message.
const MAX_COMPARED: usize = 256;

/// The names of all members in the params of a message, in the order of the text.
#[derive(Debug, Default)]
pub struct PresentMembers<'a>(Vec<MemberName<'a>>);

/// The name of a member, with its depth.
#[derive(Debug)]
struct MemberName<'a> {
    /// The number of objects around it, from 1 for a member of the params. Arrays do not count.
    depth: usize,
    name: Cow<'a, str>,
}

impl<'a> PresentMembers<'a> {
    pub(crate) fn push(&mut self, depth: usize, name: Cow<'a, str>) {
        self.0.push(MemberName { depth, name });
    }

    /// Rejects misspelt members: those that the method does not know and that differ from one that it
    /// knows only in case, underscores, or one edit. If `strict`, rejects all unknown ones.
    ///
    /// `dialect` selects among the meanings of a method, as in [`file_name`](crate::schema::file_name).
    /// The members of maps with free keys, such as `env`, are not checked.
    pub fn check(
        &self,
        method: &str,
        dialect: Option<&str>,
        strict: bool,
    ) -> Result<(), InvalidParams> {
        match Known::of_method(method, dialect) {
            Some(known) => self.check_against(known, strict),
            None => Ok(()),
        }
    }

    fn check_against(&self, known: &Known, strict: bool) -> Result<(), InvalidParams> {
        // The known members of each object around the current member; `None` if all are accepted.
        let mut objects = vec![Some(known)];
        let mut compared = 0;
        for (index, MemberName { depth, name }) in self.0.iter().enumerate() {
            objects.truncate(*depth);
            let mut member = None;
            if let Some(Some(object)) = objects.last() {
                member = object.0.get(&**name);
                if member.is_none() {
                    compared += 1;
                    let resembles = (compared <= MAX_COMPARED).then(|| object.resembling(name));
                    let resembles = resembles.flatten();
                    if strict || resembles.is_some() {
                        return Err(self.unknown_member(index, resembles));
                    }
                }
            }
            objects.push(member.and_then(Option::as_ref));
        }
        Ok(())
    }

    fn unknown_member(&self, index: usize, resembles: Option<&str>) -> InvalidParams {
        let name = &self.0[index].name;
        let parent = self.parent(index);
        let path = parent.as_ref().map(|parent| format!("{parent}: "));
        let path = path.unwrap_or_default();
        let text = match resembles {
            Some(known) => format!("{path}unknown member {name:?}; did you mean {known:?}?"),
            None => format!("{path}unknown member {name:?}"),
        };
        InvalidParams::new(parent, text)
    }

    /// The path of the object that a member belongs to; `None` for the params themselves.
    fn parent(&self, index: usize) -> Option<String> {
        let mut depth = self.0[index].depth;
        let mut path = Vec::new();
        for member in self.0[..index].iter().rev() {
            if member.depth < depth {
                depth = member.depth;
                path.push(&*member.name);
            }
        }
        path.reverse();
        (!path.is_empty()).then(|| path.join("."))
    }
}

/// The members of an object, each with those of the objects in it. `None` stands for a value that may
/// have any members or is no object.
#[derive(Debug, Default, PartialEq)]
struct Known(BTreeMap<String, Option<Known>>);

/// A message of a client, and its members once they are needed.
struct KnownMessage(Message, OnceLock<Known>);

impl Known {
    /// The params of a method or notification; `None` if it does not exist.
    fn of_method(method: &str, dialect: Option<&str>) -> Option<&'static Self> {
        static ALL: LazyLock<Vec<KnownMessage>> = LazyLock::new(|| {
            let messages = messages().into_iter();
            let messages = messages.filter(Message::is_from_client);
            messages
                .map(|message| KnownMessage(message, OnceLock::new()))
                .collect()
        });
        let is_wanted = |dialect: Option<&str>, message: &Message| {
            message.name() == method && message.dialect() == dialect
        };
        let found = ALL.iter().find(|known| is_wanted(dialect, &known.0));
        // Only some methods differ between dialects.
        let found = found.or_else(|| ALL.iter().find(|known| is_wanted(None, &known.0)));
        found.map(|KnownMessage(message, known)| {
            known.get_or_init(|| {
                let settings = SchemaSettings::draft2020_12().for_deserialize();
                let settings = settings.with(|settings| settings.inline_subschemas = true);
                let schema = message.params_schema(&mut settings.into_generator());
                Known::from_schema(&schema.to_value()).unwrap_or_default()
            })
        })
    }

    /// The members in a schema; of a union, those of all variants.
    fn from_schema(schema: &Value) -> Option<Self> {
        let mut known: Option<Known> = None;
        if schema["type"] == "object" || schema.get("properties").is_some() {
            // A map with free keys.
            if schema
                .get("additionalProperties")
                .is_some_and(|values| values != false)
            {
                return None;
            }
            let properties = schema["properties"].as_object().into_iter().flatten();
            let members = properties.map(|(name, value)| (name.clone(), Self::from_schema(value)));
            known = Some(Known(members.collect()));
        }
        let variants = ["anyOf", "oneOf", "allOf"]
            .into_iter()
            .filter_map(|word| schema[word].as_array())
            .flatten();
        for other in variants.chain(schema.get("items")) {
            if let Some(other) = Self::from_schema(other) {
                known.get_or_insert_default().merge(other);
            }
        }
        known
    }

    fn merge(&mut self, other: Known) {
        for (name, value) in other.0 {
            match (self.0.entry(name).or_default(), value) {
                (_, None) => {}
                (Some(known), Some(value)) => known.merge(value),
                (known @ None, value) => *known = value,
            }
        }
    }

    /// The known member that `name` was probably meant to be.
    fn resembling(&self, name: &str) -> Option<&str> {
        let folded = folded(name);
        let mut names = self.0.keys().map(String::as_str);
        names.find(|known| is_one_edit_apart(&self::folded(known), &folded))
    }
}

/// A name without the differences between `fileSystem` and `file_system`.
fn folded(name: &str) -> String {
    let letters = name.chars().filter(|letter| *letter != '_');
    letters.collect::<String>().to_ascii_lowercase()
}

/// Whether two names differ in at most one inserted, removed, replaced or swapped character.
fn is_one_edit_apart(name: &str, other: &str) -> bool {
    name.len().abs_diff(other.len()) <= 4 && strsim::osa_distance(name, other) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Known {
        Known(
            names
                .iter()
                .map(|name| ((*name).to_owned(), None))
                .collect(),
        )
    }

    #[test]
    fn case_underscores_and_one_edit_resemble() {
        let known = known(&["sandbox", "workspaceRoots", "file_system", "tty"]);
        for (name, meant) in [
            ("sandBox", Some("sandbox")),
            ("SANDBOX", Some("sandbox")),
            ("sandbx", Some("sandbox")),
            ("sandboxx", Some("sandbox")),
            ("sandbax", Some("sandbox")),
            ("sanbdox", Some("sandbox")),
            ("sand_box", Some("sandbox")),
            ("workspace_roots", Some("workspaceRoots")),
            ("fileSystem", Some("file_system")),
            ("workspaceRoot", Some("workspaceRoots")),
            ("pty", Some("tty")),
            ("sandboxing", None),
            ("sandboxPolicy", None),
            ("type", None),
            ("", None),
        ] {
            assert_eq!(known.resembling(name), meant, "{name}");
        }
    }
}
