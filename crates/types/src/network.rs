//! Managed networks: the proxy of a process, its policy on the wire, and the decisions that it makes.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::optional_member::{object, optional_object, or_default};

/// `networkProxy` of `process/start`: a proxy that the executor runs for this process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProxyParams {
    /// The configuration of the proxy.
    #[serde(deserialize_with = "object")]
    pub proxy: NetworkProxyConfig,
    /// Facts about the client, for the audit log.
    #[serde(default, deserialize_with = "optional_object")]
    pub audit_metadata: Option<AuditMetadata>,
    /// The client's name of this executor.
    pub environment_id: Option<String>,
    /// The client's name of this start.
    pub execution_id: Option<String>,
    /// How long the client may take to decide about a target that no pattern allows; absent to refuse
    /// such targets.
    pub policy_decision_timeout_ms: Option<u64>,
}

/// `proxy` of `networkProxy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProxyConfig {
    /// Must be true.
    pub enabled: bool,
    /// Offers SOCKS5 too.
    #[serde(rename = "enableSocks5")]
    pub enable_socks5: bool,
    /// Allows UDP through SOCKS5, which the proxy doesn't offer.
    #[serde(rename = "enableSocks5Udp")]
    pub enable_socks5_udp: bool,
    /// Allows public targets to be reached through the proxy that the executor's own variables name.
    pub allow_upstream_proxy: bool,
    /// Allows all unix sockets, which the proxy doesn't offer.
    pub dangerously_allow_all_unix_sockets: bool,
    /// The methods that are allowed.
    pub mode: ProxyMode,
    /// Patterns of hosts; absent for none, so that nothing is allowed.
    pub domains: Option<BTreeMap<String, DomainAccess>>,
    /// Patterns of hosts that count as not allowed, so that the client decides.
    #[serde(default)]
    pub review_domains: Vec<String>,
    /// Paths of unix sockets, which the proxy doesn't offer.
    pub unix_sockets: Option<BTreeMap<String, UnixSocketAccess>>,
    /// Allows private and local addresses, if a pattern allows them.
    pub allow_local_binding: bool,
    /// Replaces credentials in variables by placeholders. Not supported, and refused.
    #[serde(default)]
    pub credential_masking: bool,
    /// Descriptions of credentials. Not supported, and refused.
    #[serde(default)]
    pub credential_providers: BTreeMap<String, Value>,
}

/// The methods that a proxy allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum ProxyMode {
    /// GET, HEAD and OPTIONS over plain HTTP.
    Limited,
    /// Everything.
    #[default]
    Full,
}

crate::string_enum!(ProxyMode);

/// The meaning of a pattern in `domains`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum DomainAccess {
    /// As if the pattern were absent.
    None,
    /// Matching hosts are allowed.
    Allow,
    /// Matching hosts are denied, whatever else allows them.
    Deny,
}

crate::string_enum!(DomainAccess);

/// The meaning of a path in `unixSockets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum UnixSocketAccess {
    /// The socket is allowed.
    Allow,
    /// The socket is denied.
    Deny,
}

crate::string_enum!(UnixSocketAccess);

/// `auditMetadata` of `networkProxy`. Not interpreted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditMetadata {
    /// The conversation that the process belongs to.
    pub conversation_id: Option<String>,
    /// The version of the client.
    pub app_version: Option<String>,
    /// The account of the user.
    pub user_account_id: Option<String>,
    /// How the user is authenticated.
    pub auth_mode: Option<String>,
    /// The program that asked.
    pub originator: Option<String>,
    /// The user's address.
    pub user_email: Option<String>,
    /// The user's terminal.
    pub terminal_type: Option<String>,
    /// The model that asked.
    pub model: Option<String>,
    /// The short name of the model.
    pub slug: Option<String>,
}

/// `network` of `process/start` and `command/exec`: a policy by name, rules, or both together. A sandboxed
/// process reaches what it allows, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicyParams {
    /// The name of a policy of the executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Patterns of allowed hosts and ports, besides those of the named policy.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns of denied hosts and ports, whatever else allows them.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Allows private and local addresses, if a pattern allows them.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub allow_local_binding: bool,
}

/// `managedNetwork` of `process/start`: a proxy that already runs on the executor's host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedNetworkParams {
    /// The ports of the host's loopback address that the process may reach.
    #[serde(deserialize_with = "or_default")]
    pub loopback_ports: Vec<u16>,
    /// Accepted: a process may always listen in its own network namespace.
    #[serde(deserialize_with = "or_default")]
    pub allow_local_binding: bool,
    /// Paths of unix sockets. None is granted.
    #[serde(deserialize_with = "or_default")]
    pub allow_unix_sockets: Vec<String>,
    /// Asks for all unix sockets. None is granted.
    #[serde(deserialize_with = "or_default")]
    pub dangerously_allow_all_unix_sockets: bool,
}

/// A decision of a proxy about one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDecision {
    /// The time, in RFC 3339.
    pub timestamp: String,
    /// Whether the decision is about the target or about something else.
    pub scope: DecisionScope,
    /// The decision.
    pub decision: NetworkVerdict,
    /// The rule that decided.
    pub source: DecisionSource,
    /// A word for the reason, or the text of the client that decided.
    pub reason: String,
    /// The protocol of the request.
    pub protocol: NetworkProtocol,
    /// The host as requested, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The method of an HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The address of the program's end of the connection to the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whether the client allowed what the policy did not.
    pub policy_override: bool,
}

/// The subject of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum DecisionScope {
    /// The target of the request.
    Domain,
    /// Something else, such as its method.
    NonDomain,
}

crate::string_enum!(DecisionScope);

/// A decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum NetworkVerdict {
    /// It is allowed.
    Allow,
    /// It is refused.
    Deny,
    /// It is refused until a person has decided.
    Ask,
}

crate::string_enum!(NetworkVerdict);

/// The rule that made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum DecisionSource {
    /// The policy.
    BaselinePolicy,
    /// The mode of the proxy.
    ModeGuard,
    /// The state of the proxy, such as its limits.
    ProxyState,
    /// The client that was asked.
    Decider,
}

crate::string_enum!(DecisionSource);

/// The protocol of a request to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum NetworkProtocol {
    /// A plain HTTP request.
    Http,
    /// `CONNECT`.
    HttpsConnect,
    /// A TCP connection through SOCKS5.
    Socks5Tcp,
    /// Datagrams through SOCKS5. The proxy doesn't offer them.
    Socks5Udp,
}

crate::string_enum!(NetworkProtocol);

impl fmt::Display for NetworkProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::serialize(self, f)
    }
}

/// The target of a request that the client decides about: `request` of `network/policyRequest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkTarget {
    /// The protocol.
    pub protocol: NetworkProtocol,
    /// The host, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The client's decision about a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
pub enum NetworkAnswer {
    /// The request is allowed.
    Allow,
    /// It is refused.
    Deny {
        /// The reason that the program is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is refused, because a person has to decide.
    Ask {
        /// The reason that the program is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

crate::tagged_enum!(NetworkAnswer, "type");
