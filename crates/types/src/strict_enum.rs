//! Strict (de)serialization of enums: by name only.
//!
//! Serde's derived enums accept more than the variant's name. A number selects the variant with
//! that index, and an object with one member the variant with that name. Both are rejected here,
//! because a client that sends one of them may grant more than it intended.
//!
//! An enum derives its implementation with `#[serde(remote = "Self")]`, which generates inherent
//! functions instead of trait implementations. [`string_enum!`](crate::string_enum) or
//! [`tagged_enum!`](crate::tagged_enum) then implements the traits around them.

use std::fmt;

use serde::de::{
    Deserialize as _, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, Visitor,
};

/// Implements serde's traits for an enum of unit variants, as a string.
#[macro_export]
macro_rules! string_enum {
    ($name:ty) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                // Binary formats write the index of the variant.
                if !from.is_human_readable() {
                    return <$name>::deserialize(from);
                }
                let variant = <String as serde::Deserialize>::deserialize(from)?;
                <$name>::deserialize(serde::de::IntoDeserializer::into_deserializer(variant))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }
    };
}

/// Implements serde's traits for an enum, as an object whose member `$tag` names the variant.
#[macro_export]
macro_rules! tagged_enum {
    ($name:ty, $tag:literal) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$name>::deserialize($crate::strict_enum::Tagged { from, tag: $tag })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }
    };
}

/// Runs the seed on a value that must be a string.
struct FromString<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for FromString<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T::Value, D::Error> {
        self.0
            .deserialize(String::deserialize(from)?.into_deserializer())
    }
}

/// Deserializes an object in which the member `tag` must be a string.
#[derive(Debug)]
pub struct Tagged<D> {
    /// The deserializer of the object.
    pub from: D,
    /// The name of the member.
    pub tag: &'static str,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let tag = self.tag;
        self.from.deserialize_map(ObjectVisitor { visitor, tag })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// Passes an object to `visitor`, and nothing else.
struct ObjectVisitor<V> {
    visitor: V,
    tag: &'static str,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(TagCheckedMap {
            members,
            tag: self.tag,
            is_tag: false,
        })
    }
}

/// The members of an object, of which the tag must be a string.
struct TagCheckedMap<A> {
    members: A,
    tag: &'static str,
    /// Whether the next value is the tag's.
    is_tag: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for TagCheckedMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.members.next_key::<String>()? else {
            return Ok(None);
        };
        self.is_tag = name == self.tag;
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        if !self.is_tag {
            return self.members.next_value_seed(seed);
        }
        // In one step, so that `serde_path_to_error` attributes an error to this member.
        self.members.next_value_seed(FromString(seed))
    }
}
