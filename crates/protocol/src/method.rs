//! The tables of methods and notifications, with their params and results.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::fs::Sandboxed;
use crate::schema::{Message, Sender};
// The tables name nearly every type of the crate.
use crate::*;

/// Defines the notifications from one row each: the sender and the params, followed by those of
/// another dialect that uses the name.
macro_rules! notifications {
    ($(
        $(#[$doc:meta])*
        $name:ident $value:literal $sender:ident ($params:ty) $($dialect:literal ($other:ty))?;
    )*) => {
        $($(#[$doc])* pub const $name: &str = $value;)*

        /// All notifications, in both directions.
        pub const NOTIFICATIONS: [&str; [$($value),*].len()] = [$($name),*];

        fn notifications() -> Vec<Message> {
            vec![$(
                Message::notification::<$params>($name, Sender::$sender),
                $(Message::notification::<$other>($name, Sender::$sender).of_dialect($dialect),)?
            )*]
        }
    };
}

notifications! {
    /// Client notification: the handshake is complete.
    INITIALIZED "initialized" Client (Empty);
    /// Client notification: acknowledges the events of a process up to a number.
    PROCESS_ACK "process/ack" Client (AckParams);
    /// Server notification: output of a process.
    PROCESS_OUTPUT "process/output" Server (ProcessOutput<'static>);
    /// Server notification: a process exited.
    PROCESS_EXITED "process/exited" Server (ProcessExited) "spawn" (SpawnExited);
    /// Server notification: a process is closed; no event follows.
    PROCESS_CLOSED "process/closed" Server (ProcessClosed);
    /// Server notification: output of a spawned process.
    PROCESS_OUTPUT_DELTA "process/outputDelta" Server (SpawnOutput<'static>);
    /// Server notification: output of a command.
    COMMAND_OUTPUT_DELTA "command/exec/outputDelta" Server (CommandOutput<'static>) "v0" (V0Output<'static>);
    /// Server notification: a command of the first exec protocol exited.
    COMMAND_EXITED "command/exec/exited" Server (V0Exited);
    /// Server notification: a chunk of the body of an HTTP response.
    HTTP_BODY_DELTA "http/request/bodyDelta" Server (HttpBodyDelta<'static>);
    /// Server notification: files of a watch have changed.
    FS_CHANGED "fs/changed" Server (FsChanged) "app" (AppChanged);
    /// Server notification: a missing path may exist now.
    FS_MISSING_CHANGED "fs/missingChanged" Server (FsMissingChanged);
    /// Server notification: the proxy of a process has decided about a request.
    NETWORK_POLICY_DECISION "network/policyDecision" Server (NetworkPolicyDecision);
    /// Client notification: acknowledges the chunks of a body up to a number.
    HTTP_ACK "http/request/ack" Client (HttpAckParams);
    /// Client notification: cancels a response.
    HTTP_CANCEL "http/request/cancel" Client (HttpCancelParams);
}

/// Server request: asks the client about a target that no rule of a process's proxy allows.
pub const NETWORK_POLICY_REQUEST: &str = "network/policyRequest";

fn server_requests() -> Vec<Message> {
    vec![Message::server_request::<
        NetworkPolicyRequestParams,
        NetworkPolicyRequestResult,
    >(NETWORK_POLICY_REQUEST)]
}

/// Defines the methods from one row each: the name, the family and the lane, the params and the
/// result. Then follow those of another dialect that uses the name, or the variant of [`FileOp`] that
/// the method performs.
macro_rules! methods {
    ($(
        $method:ident $name:literal $family:ident $lane:ident
        ($params:ty) -> ($result:ty)
        $($dialect:literal ($other_params:ty) -> ($other_result:ty))?
        $(performs $op:ident)?;
    )*) => {
        /// A method that a client can call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $method,)*
        }

        impl Method {
            /// All methods.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$method),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$method => $name,)*
                }
            }

            /// The family, which determines the error before the handshake.
            pub fn family(self) -> Family {
                match self {
                    $(Self::$method => Family::$family,)*
                }
            }

            /// The ordering relative to other requests.
            pub fn lane(self) -> Lane {
                match self {
                    $(Self::$method => Lane::$lane,)*
                }
            }

            /// Checks that params can be decoded.
            pub fn check_params(self, params: Option<&RawValue>) -> Result<(), InvalidParams> {
                match self {
                    $(Self::$method => parse_params::<$params>(params).map(drop),)*
                }
            }

            /// Parses the params of a file operation; none if the method is none.
            pub(crate) fn parse_op(
                self,
                params: Option<&RawValue>,
            ) -> Option<Result<FileOp, InvalidParams>> {
                match self {
                    $($(Self::$method => Some(parse_params(params).map(FileOp::$op)),)?)*
                    _ => None,
                }
            }
        }

        impl FileRequest {
            /// The method of the request.
            #[must_use]
            pub fn method(&self) -> Method {
                match self.op {
                    $($(FileOp::$op(_) => Method::$method,)?)*
                }
            }
        }

        /// Serializes as the params of the method.
        impl Serialize for FileRequest {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let sandbox = self.sandbox.as_ref();
                match &self.op {
                    $($(FileOp::$op(params) => Sandboxed { params, sandbox }.serialize(serializer),)?)*
                }
            }
        }

        /// All requests and notifications with their types.
        pub(crate) fn messages() -> Vec<Message> {
            let mut messages = notifications();
            messages.extend(server_requests());
            messages.extend([$(
                Message::request::<methods!(@params $params $(, $op)?), $result>($name),
                $(Message::request::<$other_params, $other_result>($name).of_dialect($dialect),)?
            )*]);
            messages
        }
    };
    (@params $params:ty) => { $params };
    (@params $params:ty, $op:ident) => { Sandboxed<'static, $params> };
}

methods! {
    Initialize           "initialize"             Handshake         Handshake (InitializeParams) -> (InitializeResult);
    ProcessStart         "process/start"          Exec              Keyed     (StartParams) -> (StartResult);
    ProcessRead          "process/read"           Exec              Keyed     (ReadParams) -> (ReadResult);
    ProcessWrite         "process/write"          Exec              Keyed     (WriteParams) -> (WriteResult);
    ProcessSignal        "process/signal"         Exec              Control   (SignalParams) -> (Empty);
    ProcessTerminate     "process/terminate"      Exec              Control   (TerminateParams) -> (TerminateResult);
    ProcessResize        "process/resize"         Exec              Control   (ResizeParams) -> (Empty);
    ProcessList          "process/list"           Exec              Free      (Empty) -> (ListResult);
    ProcessNetwork       "process/network"        Exec              Keyed     (NetworkParams) -> (NetworkResult);
    ProcessSpawn         "process/spawn"          App               Keyed     (SpawnParams) -> (Empty);
    ProcessWriteStdin    "process/writeStdin"     App               Keyed     (WriteStdinParams) -> (Empty);
    ProcessResizePty     "process/resizePty"      App               Control   (ResizePtyParams) -> (Empty);
    ProcessKill          "process/kill"           App               Control   (KillParams) -> (Empty);
    CommandExec          "command/exec"           App               Keyed     (CommandParams) -> (CommandResult)
                                                                              "v0" (V0ExecParams) -> (V0ExecResult);
    CommandExecWrite     "command/exec/write"     App               Keyed     (CommandWriteParams) -> (Empty)
                                                                              "v0" (V0WriteParams) -> (V0WriteResult);
    CommandExecResize    "command/exec/resize"    App               Control   (CommandResizeParams) -> (Empty);
    CommandExecTerminate "command/exec/terminate" App               Control   (CommandTerminateParams) -> (Empty)
                                                                              "v0" (V0TerminateParams) -> (V0TerminateResult);
    EnvironmentInfo      "environment/info"       EnvironmentInfo   Control   (Empty) -> (EnvironmentInfo);
    EnvironmentStatus    "environment/status"     EnvironmentStatus Control   (Empty) -> (StatusResult);
    EnvironmentConfigRead "environmentConfig/read" EnvironmentConfig Free (EnvironmentConfigParams) -> (EnvironmentConfigResult);
    CapabilityRootsDiscover "capabilityRoots/discoverV1" CapabilityDiscovery Free (DiscoverRootsParams) -> (DiscoverRootsResult);
    CapabilitiesDiscover "capabilities/discoverV2" CapabilityDiscovery Free   (DiscoverParams) -> (DiscoverResult);
    SessionClose         "session/close"          Exec              Free      (SessionCloseParams) -> (SessionCloseResult);
    SessionList          "session/list"           Exec              Free      (Empty) -> (SessionListResult);
    SessionLease         "session/lease"          Exec              Control   (SessionLeaseParams) -> (SessionLeaseResult);
    ConfigRead           "config/read"            App               Free      (ConfigReadParams) -> (ConfigReadResult);
    FsReadFile           "fs/readFile"            Filesystem        Keyed     (FsReadFileParams) -> (FsReadFileResult)
                                                                              "app" (FsReadFileParams<AbsolutePath>) -> (FsReadFileResult);
    FsOpen               "fs/open"                Filesystem        Keyed     (FsOpenParams) -> (FsOpenResult);
    FsReadBlock          "fs/readBlock"           Filesystem        Keyed     (FsReadBlockParams) -> (FsReadBlockResult);
    FsClose              "fs/close"               Filesystem        Control   (FsCloseParams) -> (Empty);
    FsWriteFile          "fs/writeFile"           Filesystem        Keyed     (FsWriteFileParams) -> (Empty)
                                                                              "app" (FsWriteFileParams<AbsolutePath>) -> (Empty);
    FsCreateDirectory    "fs/createDirectory"     Filesystem        Keyed     (FsCreateDirectoryParams) -> (Empty)
                                                                              "app" (Sandboxed<'static, FsCreateDirectoryParams<AbsolutePath>>) -> (Empty)
                                                                              performs CreateDirectory;
    FsGetMetadata        "fs/getMetadata"         Filesystem        Keyed     (FsGetMetadataParams) -> (FileMetadata)
                                                                              "app" (Sandboxed<'static, FsGetMetadataParams<AbsolutePath>>) -> (AppMetadata)
                                                                              performs GetMetadata;
    FsCanonicalize       "fs/canonicalize"        Filesystem        Keyed     (FsCanonicalizeParams) -> (FsCanonicalizeResult) performs Canonicalize;
    FsReadDirectory      "fs/readDirectory"       Filesystem        Keyed     (FsReadDirectoryParams) -> (FsReadDirectoryResult)
                                                                              "app" (Sandboxed<'static, FsReadDirectoryParams<AbsolutePath>>) -> (FsReadDirectoryResult)
                                                                              performs ReadDirectory;
    FsWalk               "fs/walk"                Filesystem        Keyed     (FsWalkParams) -> (WalkResult) performs Walk;
    FsRemove             "fs/remove"              Filesystem        Keyed     (FsRemoveParams) -> (Empty)
                                                                              "app" (Sandboxed<'static, FsRemoveParams<AbsolutePath>>) -> (Empty)
                                                                              performs Remove;
    FsCopy               "fs/copy"                Filesystem        Keyed     (FsCopyParams) -> (Empty)
                                                                              "app" (Sandboxed<'static, FsCopyParams<AbsolutePath>>) -> (Empty)
                                                                              performs Copy;
    FsCreateStream       "fs/createStream"        Filesystem        Keyed     (FsCreateStreamParams) -> (Empty);
    FsWriteBlock         "fs/writeBlock"          Filesystem        Keyed     (FsWriteBlockParams) -> (Empty);
    FsCommit             "fs/commit"              Filesystem        Keyed     (FsCommitParams) -> (Empty);
    FsWatch              "fs/watch"               Filesystem        Keyed     (FsWatchParams) -> (FsWatchResult)
                                                                              "app" (AppWatchParams) -> (AppWatchResult);
    FsUnwatch            "fs/unwatch"             Filesystem        Control   (FsUnwatchParams) -> (Empty);
    FsWatchMissing       "fs/watchMissing"        Filesystem        Keyed     (FsWatchMissingParams) -> (FsWatchMissingResult);
    HttpRequest          "http/request"           Http              Free      (HttpRequestParams) -> (HttpRequestResult);
}

/// A group of methods that are rejected with the same text before the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The handshake itself.
    Handshake,
    /// Processes of the session.
    Exec,
    /// `environment/info`
    EnvironmentInfo,
    /// `environment/status`
    EnvironmentStatus,
    /// `environmentConfig/read`
    EnvironmentConfig,
    /// `capabilityRoots/discoverV1` and `capabilities/discoverV2`
    CapabilityDiscovery,
    /// `fs/*`
    Filesystem,
    /// `http/*`
    Http,
    /// Methods of the app-server, which has its own texts.
    App,
}

/// The ordering of a request relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Handled inline, before any later message.
    Handshake,
    /// Handled at once, even when other requests are rejected for overload.
    Control,
    /// In order among requests about the same process, handle or path.
    Keyed,
    /// In any order.
    Free,
}

/// Families by prefix, for names that are not served.
const PREFIXES: [(&str, Family); 4] = [
    ("fs/", Family::Filesystem),
    ("http/", Family::Http),
    ("command/exec", Family::App),
    ("config/read", Family::App),
];

impl Method {
    /// Whether the released app-servers have the method. Their clients use other params and codes.
    pub fn is_of_app_server(self) -> bool {
        self.family() == Family::App
            || matches!(
                self,
                Self::FsReadFile
                    | Self::FsWriteFile
                    | Self::FsCreateDirectory
                    | Self::FsGetMetadata
                    | Self::FsReadDirectory
                    | Self::FsRemove
                    | Self::FsCopy
                    | Self::FsWatch
                    | Self::FsUnwatch
            )
    }

    /// The method with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl Family {
    /// The name in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Exec => "exec",
            Self::EnvironmentInfo => "environment info",
            Self::EnvironmentStatus => "environment status",
            Self::EnvironmentConfig => "environment config",
            Self::CapabilityDiscovery => "capability discovery",
            Self::Filesystem => "filesystem",
            Self::Http => "http",
            Self::App => "app-server",
        }
    }
}

/// The family of a method name, even of one that is not served. Before the handshake, the error
/// names the family.
pub fn family_of_name(method: &str) -> Option<Family> {
    Method::from_name(method).map(Method::family).or_else(|| {
        PREFIXES
            .iter()
            .find(|(prefix, _)| method.starts_with(prefix))
            .map(|(_, family)| *family)
    })
}
