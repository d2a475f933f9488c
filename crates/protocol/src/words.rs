//! Choices that are spelled out: a member that is one of some words, and an object whose kind is.
//!
//! What is derived for an enum reads more than the word. A number counts as the variant of that
//! place, and an object with one member as the variant of that name. Both would be understood as
//! something that nobody said, and what a client says may be what it grants.
//!
//! So the enums here derive with `#[serde(remote = "Self")]`, which makes plain functions of what is
//! derived, and these macros write the traits around them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor};

/// Reads and writes an enum without members as one of its words.
macro_rules! word {
    ($name:ty) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = $crate::words::read(from)?;
                <$name>::deserialize(serde::de::IntoDeserializer::into_deserializer(word))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }
    };
}

/// Reads and writes an enum as an object whose kind is a word, under this name.
macro_rules! tagged {
    ($name:ty, $tag:literal) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$name>::deserialize($crate::words::Tagged { from, tag: $tag })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }
    };
}

pub(crate) use {tagged, word};

/// Reads a string and nothing else.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Word)
}

struct Word;

impl Visitor<'_> for Word {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

impl<'de> DeserializeSeed<'de> for Word {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        read(from)
    }
}

/// What is read of a string and of nothing else.
struct OfAWord<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for OfAWord<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(read(from)?.into_deserializer())
    }
}

/// An object in which the member `tag` is a string.
pub(crate) struct Tagged<D> {
    pub(crate) from: D,
    pub(crate) tag: &'static str,
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
        self.visitor.visit_map(Members {
            members,
            tag: self.tag,
            is_tag: false,
        })
    }
}

struct Members<A> {
    members: A,
    tag: &'static str,
    /// Whether the value that comes next is the tag's.
    is_tag: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.members.next_key_seed(Word)? else {
            return Ok(None);
        };
        self.is_tag = name == self.tag;
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        if !self.is_tag {
            return self.members.next_value_seed(seed);
        }
        // In one step, so that who names the member of a mistake names this one.
        self.members.next_value_seed(OfAWord(seed))
    }
}
