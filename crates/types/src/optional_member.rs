//! Deserialization rules for the members of an object.
//!
//! Some clients leave out an optional member, others send `null`. Both mean the same for every
//! optional member.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// Params or a result without members: `{}`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
pub struct Empty {}

/// Reads `null` as the default value.
///
/// # Errors
/// When the value is neither a `T` nor `null`.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads `null` as `true`, for a switch that is on by default.
///
/// # Errors
/// When the value is neither a boolean nor `null`.
pub fn or_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(|value| value.unwrap_or(true))
}

/// Returns `true`: the default of a switch that is on by default.
#[must_use]
pub fn default_true() -> bool {
    true
}

/// Reads a number, and a negative one as 0, so that the check of the limits rejects both with the same
/// message.
///
/// # Errors
/// When the value is no integer.
pub fn negative_as_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct NegativeAsZero;

    impl Visitor<'_> for NegativeAsZero {
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

    deserializer.deserialize_u64(NegativeAsZero)
}

/// Reads a string and parses it in place. `expected` is the expectation in the error for another type.
///
/// # Errors
/// When the value is no string, or `parse` rejects it.
pub fn parse_str<'de, D, T, E>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    struct ParseStr<T, E>(&'static str, fn(&str) -> Result<T, E>);

    impl<T, E: fmt::Display> Visitor<'_> for ParseStr<T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        // Also called for borrowed strings.
        fn visit_str<R: de::Error>(self, text: &str) -> Result<T, R> {
            (self.1)(text).map_err(R::custom)
        }
    }

    deserializer.deserialize_str(ParseStr(expected, parse))
}

/// Reads an object of type `T`.
///
/// # Errors
/// When the value is no such object.
pub fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads a list of objects of type `T`, and `null` as an empty list.
///
/// # Errors
/// When the value is neither a list of such objects nor `null`.
pub fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects: Option<Vec<Object<T>>> = Option::deserialize(deserializer)?;
    let objects = objects.unwrap_or_default().into_iter();
    Ok(objects.map(|Object(value)| value).collect())
}

/// Reads an object of type `T`, or `null`.
///
/// # Errors
/// When the value is neither.
pub fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let object: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

/// A `T` that is written as a JSON object. A derived struct would also accept an array of its
/// members' values, whose order is no contract.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Reads an object.
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
