//! Parsing of params, and types of their members.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use outpost_types::members::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::{PathUri, PathUriError};

/// Invalid params. The text names the invalid member, if there is one.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", self.prefix())]
pub struct InvalidParams {
    /// The path of the member, such as `size.rows`.
    member: Option<String>,
    is_foreign_path: bool,
    why: serde_json::Error,
}

impl InvalidParams {
    /// An error about a member, or about the whole value.
    pub(crate) fn new(member: Option<String>, why: serde_json::Error) -> Self {
        InvalidParams {
            member,
            is_foreign_path: false,
            why,
        }
    }

    /// The invalid member; `None` if a member is missing or the whole value is invalid.
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Whether the invalid member is the URI of a file on another host. File operations have a
    /// distinct error code for it.
    pub fn is_foreign_path(&self) -> bool {
        self.is_foreign_path
    }

    fn prefix(&self) -> String {
        let member = self.member.as_ref();
        member.map_or_else(String::new, |member| format!("{member}: "))
    }
}

/// Parses the params of a method. Absent params count as `{}`.
///
/// The result may borrow from the message.
pub fn parse_params<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
) -> Result<T, InvalidParams> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text)
        .map(|Object(value)| value)
        .map_err(|why| {
            let member = invalid_member::<T>(text);
            InvalidParams {
                is_foreign_path: member.as_deref().is_some_and(|name| is_foreign(text, name)),
                member,
                why,
            }
        })
}

/// Finds the invalid member with a second parse, which only invalid params pay for.
fn invalid_member<'a, T: Deserialize<'a>>(text: &'a str) -> Option<String> {
    let mut again = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, Object<T>>(&mut again).err()?;
    let is_named = |segment: &Segment| !matches!(segment, Segment::Unknown);
    let path = error.path();
    (path.iter().len() > 0 && path.iter().all(is_named)).then(|| path.to_string())
}

/// Whether a member of the params is the URI of a file on another host.
fn is_foreign(text: &str, member: &str) -> bool {
    let members: HashMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let value = members
        .get(member)
        .map(|value| serde_json::from_str::<String>(value.get()));
    value.is_some_and(|uri| {
        uri.is_ok_and(|uri| PathUri::parse(&uri) == Err(PathUriError::ForeignHost))
    })
}

/// An absolute native path of the host, for methods without URIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PathBuf")]
#[schemars(
    !try_from,
    description = "An absolute path of the server's host, as the host writes it.",
    extend("pattern" = "^/")
)]
pub struct AbsolutePath(PathBuf);

impl AbsolutePath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path, owned.
    pub fn into_path(self) -> PathBuf {
        self.0
    }
}

impl TryFrom<PathBuf> for AbsolutePath {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, &'static str> {
        if path.is_absolute() {
            Ok(Self(path))
        } else {
            Err("path is not absolute")
        }
    }
}

/// A setting that has a default and can be switched off. `null` and absent differ here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Override<T> {
    /// Absent: the server's default.
    #[default]
    Unspecified,
    /// `null`: off.
    Off,
    /// A value.
    Value(T),
}

impl<T> Override<T> {
    /// Combines two members: a value, and a switch that turns it off.
    pub fn switched(value: Option<T>, off: bool) -> Self {
        match value {
            _ if off => Self::Off,
            None => Self::Unspecified,
            Some(value) => Self::Value(value),
        }
    }

    /// The effective value, given the server's default.
    pub fn or(self, default: T) -> Option<T> {
        match self {
            Self::Unspecified => Some(default),
            Self::Off => None,
            Self::Value(value) => Some(value),
        }
    }

    /// Whether it is absent.
    pub fn is_unspecified(&self) -> bool {
        matches!(self, Self::Unspecified)
    }
}

impl<T: Serialize> Serialize for Override<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unspecified | Self::Off => serializer.serialize_none(),
            Self::Value(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Override<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Off, Self::Value))
    }
}
