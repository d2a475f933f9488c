//! Delivery of output to the owner of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines when an event counts as delivered to the owner of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Delivery {
    /// An event is delivered once it was written to the owner's connection. Without a connection,
    /// the process does not wait for its owner.
    #[default]
    Push,
    /// An event is delivered once the owner has acknowledged it, with or without a connection.
    Acked,
}

crate::string_enum!(Delivery);
