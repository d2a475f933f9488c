//! What a client wants a process to be confined to.

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::params::{object, parse_params};

/// `sandbox` of `process/start`: opened as far as it takes to know whether there is anything to
/// enforce. The rest stays as it was sent.
#[derive(Clone, Debug)]
pub struct SandboxParams {
    /// What is wanted, by kind.
    pub permissions: Permissions,
    /// The whole object, `permissions` included.
    raw: Box<RawValue>,
}

/// `permissions` of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct Permissions {
    /// `type` on the wire.
    #[serde(rename = "type")]
    pub kind: PermissionsKind,
}

/// Who confines the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionsKind {
    /// This server, which must enforce all of it or not start the process.
    Managed,
    /// Nobody.
    Disabled,
    /// Somebody else already does.
    External,
}

impl SandboxParams {
    /// The whole object as it was sent.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl PartialEq for SandboxParams {
    fn eq(&self, other: &Self) -> bool {
        self.raw.get() == other.raw.get()
    }
}

impl Serialize for SandboxParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// The part of a sandbox that is read here.
#[derive(serde::Deserialize)]
struct Opened {
    #[serde(deserialize_with = "object")]
    permissions: Permissions,
}

impl<'de> Deserialize<'de> for SandboxParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Opened { permissions } = parse_params(Some(&raw)).map_err(D::Error::custom)?;
        Ok(Self { permissions, raw })
    }
}
