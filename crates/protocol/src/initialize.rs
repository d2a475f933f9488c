//! `initialize`: identifies the client, and opens or resumes a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::params::parse_params;
use crate::{Delivery, EnvironmentInfo, HostInfo, ServerCapabilities};
use outpost_types::members::{optional_object, or_default};

/// The `protocolVersion` of the result.
pub const PROTOCOL_VERSION: &str = "exec-server.v0";

/// Params of `initialize`. Each kind of client sends some of them.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The name of an exec-server client.
    pub client_name: Option<String>,
    /// The name and version of an app-server client.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub client_info: Option<ClientInfo>,
    /// The features that the client wants to use.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub capabilities: Option<ClientCapabilities>,
    /// The session to resume; absent for a new one.
    pub resume_session_id: Option<String>,
    /// The lifetime of the session without a connection.
    #[serde(default, skip_serializing_if = "DetachedTtl::is_unspecified")]
    pub detached_ttl_ms: DetachedTtl,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_label: Option<String>,
    /// Resumes the session even if another connection has it.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub takeover: bool,
    /// The delivery of output; absent for [`Delivery::Push`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The last event that the client has seen, by process.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub resume_from: BTreeMap<String, u64>,
}

/// Whether the params of an `initialize` have a `clientInfo`, even if they are invalid otherwise.
pub fn has_client_info(params: Option<&RawValue>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek {
        client_info: Option<IgnoredAny>,
    }
    parse_params::<Peek>(params).is_ok_and(|peek| peek.client_info.is_some())
}

/// The name and version of a client.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The version, in any form.
    pub version: Option<String>,
}

/// The features that a client wants to use.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Methods that may still change.
    #[serde(default, deserialize_with = "or_default")]
    pub experimental_api: bool,
}

/// The lifetime of a session without a connection. `null` and absent differ here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetachedTtl {
    /// Absent: the server's default.
    #[default]
    Unspecified,
    /// `null`: until the session is closed.
    Unlimited,
    /// A number of milliseconds.
    Millis(u64),
}

impl DetachedTtl {
    fn is_unspecified(&self) -> bool {
        *self == Self::Unspecified
    }
}

impl Serialize for DetachedTtl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unspecified | Self::Unlimited => serializer.serialize_none(),
            Self::Millis(millis) => serializer.serialize_u64(*millis),
        }
    }
}

impl<'de> Deserialize<'de> for DetachedTtl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Unlimited, Self::Millis))
    }
}

/// Result of `initialize`, with the members that any client reads.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The session id. It authorizes a takeover of the session, so it must not be logged.
    pub session_id: String,
    /// [`PROTOCOL_VERSION`].
    pub protocol_version: String,
    /// The name and version of the server.
    pub server_info: ServerInfo,
    /// The name and version of the server, as one string.
    pub user_agent: String,
    /// The configuration directory, an absolute native path.
    pub codex_home: String,
    /// As in `environment/info`.
    pub platform_os: String,
    /// `unix` or `windows`.
    pub platform_family: String,
    /// The result of `environment/info`.
    pub environment_info: EnvironmentInfo,
    /// Extensions beyond the released servers.
    pub capabilities: ServerCapabilities,
}

/// Result of `initialize` as a client reads it. A released server sends only the session id, and an
/// older one not even that.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReceivedInitializeResult {
    /// The session id; without one the session cannot be resumed.
    pub session_id: Option<String>,
    /// The name and version of the server.
    pub server_info: Option<ServerInfo>,
    /// The result of `environment/info`.
    pub environment_info: Option<HostInfo>,
    /// Extensions beyond the released servers.
    #[serde(deserialize_with = "or_default")]
    pub capabilities: ServerCapabilities,
}

/// The name and version of a server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}
