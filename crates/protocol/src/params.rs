//! From raw params to typed ones.
//!
//! Clients differ in how they say "nothing": some leave a member out, some send `null`. For every
//! optional member the two mean the same here.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

/// Params or a result without members: `{}`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
pub struct Empty {}

/// A number that has to be above zero: what is below is as good as zero, so that whoever knows the
/// limits refuses both in the same words.
pub(crate) fn at_least_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct AtLeastZero;

    impl Visitor<'_> for AtLeastZero {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("u64")
        }

        fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }

        fn visit_i64<E>(self, number: i64) -> Result<u64, E> {
            Ok(number.try_into().unwrap_or(0))
        }
    }

    deserializer.deserialize_u64(AtLeastZero)
}

/// Params that can't be read. Its text names the member that is wrong, where one is.
#[derive(Debug, thiserror::Error)]
#[error("{}{why}", self.prefix())]
pub struct InvalidParams {
    /// The way to the member, such as `size.rows`.
    member: Option<String>,
    why: serde_json::Error,
}

impl InvalidParams {
    /// The member that is wrong; nothing if it is one that isn't there, or the whole.
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    fn prefix(&self) -> String {
        let member = self.member.as_ref();
        member.map_or_else(String::new, |member| format!("{member}: "))
    }
}

/// Reads the params of a method. Absent ones are read as `{}`.
///
/// The result may borrow from the message.
pub fn parse_params<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
) -> Result<T, InvalidParams> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text)
        .map(|Object(value)| value)
        .map_err(|why| InvalidParams {
            member: member_of_mistake::<T>(text),
            why,
        })
}

/// Which member can't be read. Only who has made a mistake pays for the second look.
fn member_of_mistake<'a, T: Deserialize<'a>>(text: &'a str) -> Option<String> {
    let mut again = serde_json::Deserializer::from_str(text);
    let mistake = serde_path_to_error::deserialize::<_, Object<T>>(&mut again).err()?;
    let is_named = |segment: &Segment| !matches!(segment, Segment::Unknown);
    let path = mistake.path();
    (path.iter().len() > 0 && path.iter().all(is_named)).then(|| path.to_string())
}

/// Reads `null` as the default value.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads `null` as `true`, for switches that are on unless somebody turns them off.
pub(crate) fn or_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(|value| value.unwrap_or(true))
}

/// The default of such a switch.
pub(crate) fn yes() -> bool {
    true
}

/// Whether such a switch is where it is anyway.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde asks whether to leave a member out"
)]
pub(crate) fn is_true(value: &bool) -> bool {
    *value
}

/// Reads an object of type `T`.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads a list of objects of type `T`; `null` is an empty one.
pub(crate) fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects: Option<Vec<Object<T>>> = Option::deserialize(deserializer)?;
    let objects = objects.unwrap_or_default().into_iter();
    Ok(objects.map(|Object(value)| value).collect())
}

/// Reads an object of type `T`, or `null`.
pub(crate) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let object: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

/// A `T` that is written as a JSON object. Derived structs would also accept an array of their
/// members' values, and what the order of those is, is nobody's contract.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
