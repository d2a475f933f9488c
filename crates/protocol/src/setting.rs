//! Members for which `null` and absent differ.

use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// A setting that has a default and can be switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// Absent: the server's default.
    #[default]
    Unspecified,
    /// `null`: off.
    Off,
    /// A value.
    Value(T),
}

impl<T> Setting<T> {
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

impl<T: Serialize> Serialize for Setting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unspecified | Self::Off => serializer.serialize_none(),
            Self::Value(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Off, Self::Value))
    }
}
