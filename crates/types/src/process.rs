//! Processes: requests about them, their events, states and descriptions.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::optional_member::{object, optional_object, or_default};
use crate::sandbox::SandboxParams;
use crate::{
    EndedBy, ManagedNetworkParams, NetworkPolicyParams, NetworkProxyParams, PathUri,
    ResourceLimits, ResourceUsage, Shell,
};

/// Params of `process/start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartParams {
    /// The id of the process, chosen by the client.
    #[schemars(length(min = 1, max = 256))]
    pub process_id: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathUri,
    /// The whole environment, or variables added to those that `env_policy` selects.
    #[serde(default, deserialize_with = "or_default")]
    pub env: BTreeMap<String, String>,
    /// The variables to inherit from the server; absent for none.
    #[serde(default, deserialize_with = "optional_object")]
    pub env_policy: Option<EnvPolicy>,
    /// Runs the command of a login shell in a shell that does not read the profile, with the state that
    /// it had left when it was read first.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub shell_snapshot: Option<ShellSnapshot>,
    /// Runs the process on a PTY instead of pipes.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// Opens stdin, if there is no PTY.
    #[serde(default, deserialize_with = "or_default")]
    pub pipe_stdin: bool,
    /// The first argument that the program sees, if it is not the program's name.
    pub arg0: Option<String>,
    /// The sandbox; absent to run unsandboxed.
    #[serde(default, deserialize_with = "optional_object")]
    pub sandbox: Option<SandboxParams>,
    /// Allows a sandboxed process only the network of `network_proxy`, or else of `managed_network`.
    #[serde(default, deserialize_with = "or_default")]
    pub enforce_managed_network: bool,
    /// The ports of a proxy that runs on the executor's host.
    #[serde(default, deserialize_with = "optional_object")]
    pub managed_network: Option<ManagedNetworkParams>,
    /// The proxy that the executor runs for the process.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub network_proxy: Option<NetworkProxyParams>,
    /// The policy of its network, which is enforced with and without a sandbox for its files.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub network: Option<NetworkPolicyParams>,
    /// Data that is kept with the process and never interpreted. `threadId` must be a UUID.
    #[serde(
        default,
        deserialize_with = "metadata",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<BTreeMap<String, String>>,
    /// The size of the PTY.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<TerminalSize>,
    /// The time after which the process tree is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The number of output bytes to retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_bytes: Option<u64>,
    /// The grace period before a terminated process is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_grace_ms: Option<u64>,
    /// Limits on its resources.
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub limits: Option<ResourceLimits>,
}

/// `shellSnapshot` of `process/start`. It is ignored unless the program is the shell and its first
/// argument `-lc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShellSnapshot {
    /// A name chosen by the client. Starts share a snapshot only if it is equal.
    #[schemars(length(min = 1, max = 256))]
    pub scope_id: String,
    /// The shell: `bash`, `zsh` or `sh`.
    #[serde(deserialize_with = "object")]
    pub shell: Shell,
}

/// Reads the metadata of a process. Members that are no strings are ignored, except those that
/// released clients send.
fn metadata<'de, D>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let members: Option<BTreeMap<String, Value>> = Option::deserialize(deserializer)?;
    let Some(members) = members else {
        return Ok(None);
    };
    let mut kept = BTreeMap::new();
    for (name, value) in members {
        let is_known = matches!(&*name, "threadId" | "toolCallId");
        let text = match value {
            Value::String(text) => text,
            Value::Null => continue,
            value if is_known => String::deserialize(value).map_err(D::Error::custom)?,
            _ => continue,
        };
        if name == "threadId" {
            check_uuid(&text).map_err(D::Error::custom)?;
        }
        kept.insert(name, text);
    }
    Ok(Some(kept))
}

/// Rejects a text that is no UUID. The released servers name the first invalid character, with its
/// position from 1.
fn check_uuid(text: &str) -> Result<(), String> {
    let Err(error) = Uuid::parse_str(text) else {
        return Ok(());
    };
    let is_invalid = |c: &char| !c.is_ascii_hexdigit() && *c != '-';
    let mut characters = text.chars().zip(1..);
    Err(match characters.find(|(c, _)| is_invalid(c)) {
        Some((character, position)) => format!(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by \
             [0-9a-fA-F-], found `{character}` at {position}"
        ),
        None => error.to_string(),
    })
}

/// Describes how a child's environment is built from the server's. The fields are applied in
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvPolicy {
    /// The variables to start from.
    #[serde(default, deserialize_with = "or_default")]
    pub inherit: Inherit,
    /// Keeps variables whose names look like secrets.
    #[serde(default, deserialize_with = "or_default")]
    pub ignore_default_excludes: bool,
    /// Patterns of names to drop.
    #[serde(default, deserialize_with = "or_default")]
    pub exclude: Vec<String>,
    /// Variables to add.
    #[serde(default, deserialize_with = "or_default")]
    pub set: BTreeMap<String, String>,
    /// Patterns of names to keep; empty keeps all.
    #[serde(default, deserialize_with = "or_default")]
    pub include_only: Vec<String>,
}

/// The variables that an [`EnvPolicy`] starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Inherit {
    /// The whole environment of the server.
    #[default]
    All,
    /// The few variables that nearly every program needs.
    Core,
    /// No variables.
    None,
}

crate::string_enum!(Inherit);

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalSize {
    /// The number of lines.
    #[schemars(range(min = 1))]
    pub rows: u16,
    /// The number of characters per line.
    #[schemars(range(min = 1))]
    pub cols: u16,
}

/// The size of a terminal for which none was requested: 24 rows of 80 columns.
impl Default for TerminalSize {
    fn default() -> Self {
        TerminalSize { rows: 24, cols: 80 }
    }
}

/// A signal that can be sent to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C. The only signal that released servers know.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGHUP, sent by a closing terminal.
    Hangup,
    /// SIGQUIT.
    Quit,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGWINCH. Resizing a terminal sends it automatically.
    WindowChange,
}

crate::string_enum!(Signal);

/// The number of an event in its process's log; the first one is 1.
///
/// As a cursor it names the last event seen, so [`Seq::START`] has seen nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// The cursor that has seen nothing yet.
    pub const START: Seq = Seq(0);

    /// The number after this one, saturating.
    #[must_use]
    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }

    /// The number before this one, saturating at [`Seq::START`].
    #[must_use]
    pub fn previous(self) -> Seq {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The stream that output was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The terminal, which merges the two.
    Pty,
}

crate::string_enum!(Stream);

impl Stream {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Pty => "pty",
        }
    }
}

/// A phase in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum ProcessState {
    /// The child does not exist yet.
    Starting,
    /// The child runs.
    Running,
    /// The child has exited. Descendants may still write to its streams.
    Exited,
    /// The streams have ended too; no event follows.
    Closed,
}

crate::string_enum!(ProcessState);

/// The outcome of a write to a process's stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub enum WriteStatus {
    /// The bytes are queued in order, by this write or by an earlier one with the same id.
    Accepted,
    /// The process does not exist.
    UnknownProcess,
    /// The process has no stdin, or it is closed.
    StdinClosed,
    /// The process is still starting.
    Starting,
}

crate::string_enum!(WriteStatus);

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

/// A process that a killed server had left, and that the next server killed when it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedProcess {
    /// The pid that it had.
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
}

/// Describes one process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessEntry {
    /// The id that the client chose.
    pub process_id: String,
    /// The PID, once the process runs.
    pub pid: Option<u32>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory at the start.
    pub cwd: PathUri,
    /// Whether it runs on a PTY.
    pub tty: bool,
    /// The time of the start, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The phase it is in.
    pub state: ProcessState,
    /// The exit code, once it has exited.
    pub exit_code: Option<i32>,
    /// The number of its next event.
    pub next_seq: u64,
    /// The number of output bytes so far.
    pub bytes_out: u64,
    /// The cause of its end. Other servers don't send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The resources that it has used, once it has exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ResourceUsage>,
}
