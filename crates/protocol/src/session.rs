//! `initialize` and `session/*`: identifies the client, opens or resumes a session, lists and closes
//! sessions.

use std::collections::{BTreeMap, HashSet};

use outpost_types::optional_member::{optional_object, or_default};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Delivery, EndedProcess, EnvironmentInfo, HostInfo, Override, ProcessEntry, parse_params,
};

/// The `protocolVersion` of the result.
pub const PROTOCOL_VERSION: &str = "exec-server.v0";

/// Params of `initialize`. Each kind of client sends some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The lifetime of the session without a connection; `null` is until it is closed.
    #[serde(default, skip_serializing_if = "Override::is_unspecified")]
    #[schemars(with = "Option<u64>")]
    pub detached_ttl_ms: Override<u64>,
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
    /// Rejects unknown members in all params of the connection, these included. Otherwise only those
    /// are rejected that resemble a known one.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub strict: bool,
}

/// Whether the params of an `initialize` have a `clientInfo`, even if they are invalid otherwise.
pub fn has_client_info(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek {
        client_info: Option<IgnoredAny>,
    }
    parse_params::<Peek>(params).is_ok_and(|peek| peek.client_info.is_some())
}

/// The name and version of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The version, in any form.
    pub version: String,
}

/// The features that a client wants to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Methods that may still change.
    #[serde(default, deserialize_with = "or_default")]
    pub experimental_api: bool,
    /// Notifications that the server does not send. Unknown names are accepted.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "HashSet::is_empty"
    )]
    pub opt_out_notification_methods: HashSet<String>,
}

/// Result of `initialize`, with the members that any client reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// One boolean per extension beyond the released servers, true only if it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCapabilities {
    /// `delivery: "acked"` and `process/ack`; `acked` of `http/request`, with `http/request/ack` and
    /// `http/request/cancel`.
    pub acked: bool,
    /// Output in binary frames.
    pub binary_frames: bool,
    /// `closeStdin` of `process/write`.
    pub close_stdin: bool,
    /// `process/resize`, and `size` of `process/start`.
    pub resize: bool,
    /// Signals other than `interrupt`.
    pub signals: bool,
    /// `timeoutMs` of `process/start`.
    pub timeouts: bool,
    /// `process/list`, and `session/close` and `session/lease` of the own session.
    pub process_list: bool,
    /// `session/list`, and `session/close` of other sessions.
    pub session_list: bool,
    /// `takeover` of `initialize`.
    pub takeover: bool,
    /// `tree` of `process/terminate`.
    pub terminate_tree: bool,
    /// `fs/createStream` and related methods.
    pub fs_write_stream: bool,
    /// `fs/watch` with `file:` URIs, `recursive` and `sandbox`.
    pub fs_watch: bool,
    /// `limits` of `process/start`.
    pub limits: bool,
    /// `network` of `process/start` and `command/exec`.
    pub network_policies: bool,
    /// `process/network`.
    pub process_network: bool,
    /// `strict` of `initialize`.
    pub strict: bool,
}

/// Params of `session/close`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCloseParams {
    /// The session to close, for the owner of the server; absent for the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Result of `session/close`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCloseResult {
    /// The ids of processes whose end was not seen, although they were killed; absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_alive: Vec<String>,
}

/// Params of `session/lease`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionLeaseParams {
    /// The lifetime of the caller's session without a connection, from now on; `null` is until it is
    /// closed. Absent: it stays as it is.
    #[serde(default, skip_serializing_if = "Override::is_unspecified")]
    #[schemars(with = "Option<u64>")]
    pub detached_ttl_ms: Override<u64>,
}

/// Result of `session/lease`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionLeaseResult {
    /// The lifetime before the request; `null` is until the session is closed.
    pub detached_ttl_ms: Option<u64>,
}

/// Result of `session/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionListResult {
    /// All sessions, oldest first.
    pub sessions: Vec<SessionEntry>,
    /// The processes that a killed server had left in the same cgroup, and that this server killed
    /// when it started; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_at_start: Vec<EndedProcess>,
}

/// Describes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The session id, which authorizes the owner to resume it.
    pub session_id: String,
    /// The name for people.
    pub label: Option<String>,
    /// The principal that it belongs to, if that is not the one of the caller. Only for the scope `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Whether a connection is attached.
    pub attached: bool,
    /// The time of its creation, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The time when it expires, in milliseconds since 1970; absent while a connection is attached
    /// and for a session without expiry.
    pub expires_at_ms: Option<u64>,
    /// Its processes.
    pub processes: Vec<ProcessEntry>,
}
