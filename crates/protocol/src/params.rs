//! Parsing of params, and types of their members.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use outpost_types::optional_member::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::{PathUri, PathUriError};

/// Invalid params. The text is that of the released exec-servers' decoder, which doesn't name the
/// member.
#[derive(Debug, thiserror::Error)]
#[error("{}", exec_text(text))]
pub struct InvalidParams {
    /// The path of the member, such as `size.rows`.
    member: Option<String>,
    is_foreign_path: bool,
    /// The text of the decoder, without the position.
    text: String,
}

impl InvalidParams {
    /// An error about a member, or about the whole value.
    pub(crate) fn new(member: Option<String>, text: String) -> Self {
        InvalidParams {
            member,
            is_foreign_path: false,
            text,
        }
    }

    /// The invalid member; `None` if a member is missing or the whole value is invalid.
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// The text of the released app-servers' decoder.
    pub fn app_text(&self) -> &str {
        &self.text
    }

    /// Whether the invalid member is the URI of a file on another host. File operations have a
    /// distinct error code for it.
    pub fn is_foreign_path(&self) -> bool {
        self.is_foreign_path
    }
}

/// The text of a decoding error, without the position.
fn decoder_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// The text of a decoding error with the words of the released exec-servers for numbers, which they
/// keep as text until a type is known.
fn exec_text(text: &str) -> String {
    const NUMBERS: [&str; 6] = ["u16", "u32", "u64", "i32", "i64", "usize"];
    let Some((found, expected)) = text.rsplit_once(", expected ") else {
        return text.to_owned();
    };
    let is_number = ["integer `", "floating point `"].iter().any(|number| {
        let found = found.strip_prefix("invalid type: ");
        found.is_some_and(|found| found.starts_with(number))
    });
    let is_out_of_range = found.starts_with("invalid value: integer `");
    match (is_number || is_out_of_range, is_number) {
        (true, _) if NUMBERS.contains(&expected) => "invalid number".to_owned(),
        (_, true) => format!("invalid type: number, expected {expected}"),
        _ => text.to_owned(),
    }
}

/// Checks the params of a method that has none: absent, `null` or `{}`.
pub fn parse_no_params(params: Option<&RawValue>) -> Result<(), InvalidParams> {
    use serde_json::Value;
    let value = params.map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
    let checked = value.and_then(|value| match value {
        Value::Object(members) if members.is_empty() => Ok(()),
        value => <()>::deserialize(value),
    });
    checked.map_err(|error| InvalidParams::new(None, decoder_text(&error)))
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
                text: decoder_text(&why),
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
        uri.is_ok_and(|uri| matches!(PathUri::parse(&uri), Err(PathUriError::ForeignHost(_))))
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

impl From<AbsolutePath> for PathUri {
    fn from(path: AbsolutePath) -> Self {
        PathUri::from_path(path.as_path())
    }
}

impl TryFrom<PathBuf> for AbsolutePath {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, &'static str> {
        if path.is_absolute() {
            Ok(Self(path))
        } else {
            // The text of released servers.
            Err("AbsolutePathBuf deserialized without a base path")
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
