//! `initialize`: who is calling, and which session it wants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::params::{optional_object, or_default, parse_params};
use crate::{EnvironmentInfo, ServerCapabilities, Surroundings};

/// What `protocolVersion` of the answer says.
pub const PROTOCOL_VERSION: &str = "exec-server.v0";

/// Params of `initialize`. Clients of either kind send some of these and not others.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Who is calling, as exec-server clients say it.
    pub client_name: Option<String>,
    /// Who is calling, as app-server clients say it.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub client_info: Option<ClientInfo>,
    /// What the client wants to be able to use.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub capabilities: Option<ClientCapabilities>,
    /// The session to take up again; absent for a new one.
    pub resume_session_id: Option<String>,
    /// How long the session stays when nobody is attached.
    #[serde(default, skip_serializing_if = "DetachedTtl::is_unspecified")]
    pub detached_ttl_ms: DetachedTtl,
    /// A name for humans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_label: Option<String>,
    /// Resume although another connection is attached.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub takeover: bool,
    /// How output is delivered; absent means [`Delivery::Push`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// For each process, the last number the client has seen.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub resume_from: BTreeMap<String, u64>,
}

/// Whether the params of an `initialize` have a `clientInfo`, whatever else is wrong with them.
pub fn has_client_info(params: Option<&RawValue>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek {
        client_info: Option<IgnoredAny>,
    }
    parse_params::<Peek>(params).is_ok_and(|peek| peek.client_info.is_some())
}

/// A client's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// Its name for programs.
    pub name: String,
    /// Its name for humans.
    pub title: Option<String>,
    /// Its version, in whatever form it has one.
    pub version: Option<String>,
}

/// What a client wants to be able to use.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Methods that may still change.
    #[serde(default, deserialize_with = "or_default")]
    pub experimental_api: bool,
}

/// How long a session stays when nobody is attached. Here `null` and absent are different things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetachedTtl {
    /// Absent: as the server is configured.
    #[default]
    Unspecified,
    /// `null`: until it is closed.
    Unlimited,
    /// This many milliseconds.
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

/// How the output of a session's processes reaches its client.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Delivery {
    /// What was written to the socket counts as delivered.
    #[default]
    Push,
    /// What the client has acknowledged counts as delivered.
    Acked,
}

crate::words::word!(Delivery);

/// The answer to `initialize`: all the members that any of the clients read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The key of the session. Whoever has it can take the session over, so it stays out of logs.
    pub session_id: String,
    /// [`PROTOCOL_VERSION`].
    pub protocol_version: String,
    /// Who answers.
    pub server_info: ServerInfo,
    /// Who answers, in one string.
    pub user_agent: String,
    /// The configuration folder, an absolute native path.
    pub codex_home: String,
    /// As in `environment/info`.
    pub platform_os: String,
    /// `unix` or `windows`.
    pub platform_family: String,
    /// What `environment/info` would say.
    pub environment_info: EnvironmentInfo,
    /// What goes beyond the released servers.
    pub capabilities: ServerCapabilities,
}

/// The answer to `initialize` as a client reads it: a released server says no more than which
/// session it is, and an older one not even that.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Welcome {
    /// The key of the session; without one there is nothing that could be resumed.
    pub session_id: Option<String>,
    /// Who answers.
    pub server_info: Option<ServerInfo>,
    /// What `environment/info` would say.
    pub environment_info: Option<Surroundings>,
    /// What goes beyond the released servers.
    #[serde(deserialize_with = "or_default")]
    pub capabilities: ServerCapabilities,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}
