//! Parsing of params.

use outpost_types::members::Object;
use schemars::JsonSchema;
use serde::de::Deserialize;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

/// Params or a result without members: `{}`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
pub struct Empty {}

/// Invalid params. The text names the invalid member, if there is one.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", self.prefix())]
pub struct InvalidParams {
    /// The path of the member, such as `size.rows`.
    member: Option<String>,
    why: serde_json::Error,
}

impl InvalidParams {
    /// The invalid member; `None` if a member is missing or the whole value is invalid.
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
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
        .map_err(|why| InvalidParams {
            member: invalid_member::<T>(text),
            why,
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
