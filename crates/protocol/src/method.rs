//! The table of methods.

/// Client notification: the handshake is complete.
pub const INITIALIZED: &str = "initialized";
/// Client notification: acknowledges the events of a process up to a number.
pub const PROCESS_ACK: &str = "process/ack";
/// Server notification: output of a process.
pub const PROCESS_OUTPUT: &str = "process/output";
/// Server notification: a process exited.
pub const PROCESS_EXITED: &str = "process/exited";
/// Server notification: a process is closed; no event follows.
pub const PROCESS_CLOSED: &str = "process/closed";
/// Server notification: output of a spawned process.
pub const PROCESS_OUTPUT_DELTA: &str = "process/outputDelta";
/// Server notification: output of a command.
pub const COMMAND_OUTPUT_DELTA: &str = "command/exec/outputDelta";
/// Server notification: a command of the first exec protocol exited.
pub const COMMAND_EXITED: &str = "command/exec/exited";

/// Server notification: a chunk of the body of an HTTP response.
pub const HTTP_BODY_DELTA: &str = "http/request/bodyDelta";
/// Client notification: acknowledges the chunks of a body up to a number.
pub const HTTP_ACK: &str = "http/request/ack";
/// Client notification: cancels a response.
pub const HTTP_CANCEL: &str = "http/request/cancel";

/// All notifications, in both directions.
pub const NOTIFICATIONS: [&str; 11] = [
    INITIALIZED,
    PROCESS_ACK,
    PROCESS_OUTPUT,
    PROCESS_EXITED,
    PROCESS_CLOSED,
    PROCESS_OUTPUT_DELTA,
    COMMAND_OUTPUT_DELTA,
    COMMAND_EXITED,
    HTTP_BODY_DELTA,
    HTTP_ACK,
    HTTP_CANCEL,
];

/// A method that a client can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `process/start`
    ProcessStart,
    /// `process/read`
    ProcessRead,
    /// `process/write`
    ProcessWrite,
    /// `process/signal`
    ProcessSignal,
    /// `process/terminate`
    ProcessTerminate,
    /// `process/resize`
    ProcessResize,
    /// `process/list`
    ProcessList,
    /// `process/spawn`
    ProcessSpawn,
    /// `process/writeStdin`
    ProcessWriteStdin,
    /// `process/resizePty`
    ProcessResizePty,
    /// `process/kill`
    ProcessKill,
    /// `command/exec`
    CommandExec,
    /// `command/exec/write`
    CommandExecWrite,
    /// `command/exec/resize`
    CommandExecResize,
    /// `command/exec/terminate`
    CommandExecTerminate,
    /// `environment/info`
    EnvironmentInfo,
    /// `environment/status`
    EnvironmentStatus,
    /// `session/close`
    SessionClose,
    /// `session/list`
    SessionList,
    /// `config/read`
    ConfigRead,
    /// `fs/readFile`
    FsReadFile,
    /// `fs/open`
    FsOpen,
    /// `fs/readBlock`
    FsReadBlock,
    /// `fs/close`
    FsClose,
    /// `fs/writeFile`
    FsWriteFile,
    /// `fs/createDirectory`
    FsCreateDirectory,
    /// `fs/getMetadata`
    FsGetMetadata,
    /// `fs/canonicalize`
    FsCanonicalize,
    /// `fs/readDirectory`
    FsReadDirectory,
    /// `fs/walk`
    FsWalk,
    /// `fs/remove`
    FsRemove,
    /// `fs/copy`
    FsCopy,
    /// `fs/createStream`
    FsCreateStream,
    /// `fs/writeBlock`
    FsWriteBlock,
    /// `fs/commit`
    FsCommit,
    /// `http/request`
    HttpRequest,
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
    Process,
    /// In any order.
    Free,
}

struct Row {
    method: Method,
    name: &'static str,
    family: Family,
    lane: Lane,
}

const fn row(method: Method, name: &'static str, family: Family, lane: Lane) -> Row {
    Row {
        method,
        name,
        family,
        lane,
    }
}

/// In the order of the enum, so that the method is the index.
#[rustfmt::skip]
const TABLE: [Row; 37] = [
    row(Method::Initialize,           "initialize",             Family::Handshake,         Lane::Handshake),
    row(Method::ProcessStart,         "process/start",          Family::Exec,              Lane::Process),
    row(Method::ProcessRead,          "process/read",           Family::Exec,              Lane::Process),
    row(Method::ProcessWrite,         "process/write",          Family::Exec,              Lane::Process),
    row(Method::ProcessSignal,        "process/signal",         Family::Exec,              Lane::Control),
    row(Method::ProcessTerminate,     "process/terminate",      Family::Exec,              Lane::Control),
    row(Method::ProcessResize,        "process/resize",         Family::Exec,              Lane::Control),
    row(Method::ProcessList,          "process/list",           Family::Exec,              Lane::Free),
    row(Method::ProcessSpawn,         "process/spawn",          Family::App,               Lane::Process),
    row(Method::ProcessWriteStdin,    "process/writeStdin",     Family::App,               Lane::Process),
    row(Method::ProcessResizePty,     "process/resizePty",      Family::App,               Lane::Control),
    row(Method::ProcessKill,          "process/kill",           Family::App,               Lane::Control),
    row(Method::CommandExec,          "command/exec",           Family::App,               Lane::Process),
    row(Method::CommandExecWrite,     "command/exec/write",     Family::App,               Lane::Process),
    row(Method::CommandExecResize,    "command/exec/resize",    Family::App,               Lane::Control),
    row(Method::CommandExecTerminate, "command/exec/terminate", Family::App,               Lane::Control),
    row(Method::EnvironmentInfo,      "environment/info",       Family::EnvironmentInfo,   Lane::Control),
    row(Method::EnvironmentStatus,    "environment/status",     Family::EnvironmentStatus, Lane::Control),
    row(Method::SessionClose,         "session/close",          Family::Exec,              Lane::Free),
    row(Method::SessionList,          "session/list",           Family::Exec,              Lane::Free),
    row(Method::ConfigRead,           "config/read",            Family::App,               Lane::Free),
    row(Method::FsReadFile,           "fs/readFile",            Family::Filesystem,        Lane::Process),
    row(Method::FsOpen,               "fs/open",                Family::Filesystem,        Lane::Process),
    row(Method::FsReadBlock,          "fs/readBlock",           Family::Filesystem,        Lane::Process),
    row(Method::FsClose,              "fs/close",               Family::Filesystem,        Lane::Control),
    row(Method::FsWriteFile,          "fs/writeFile",           Family::Filesystem,        Lane::Process),
    row(Method::FsCreateDirectory,    "fs/createDirectory",     Family::Filesystem,        Lane::Process),
    row(Method::FsGetMetadata,        "fs/getMetadata",         Family::Filesystem,        Lane::Process),
    row(Method::FsCanonicalize,       "fs/canonicalize",        Family::Filesystem,        Lane::Process),
    row(Method::FsReadDirectory,      "fs/readDirectory",       Family::Filesystem,        Lane::Process),
    row(Method::FsWalk,               "fs/walk",                Family::Filesystem,        Lane::Process),
    row(Method::FsRemove,             "fs/remove",              Family::Filesystem,        Lane::Process),
    row(Method::FsCopy,               "fs/copy",                Family::Filesystem,        Lane::Process),
    row(Method::FsCreateStream,       "fs/createStream",        Family::Filesystem,        Lane::Process),
    row(Method::FsWriteBlock,         "fs/writeBlock",          Family::Filesystem,        Lane::Process),
    row(Method::FsCommit,             "fs/commit",              Family::Filesystem,        Lane::Process),
    row(Method::HttpRequest,          "http/request",           Family::Http,              Lane::Free),
];

/// Families by prefix, for names that are not served.
const PREFIXES: [(&str, Family); 4] = [
    ("fs/", Family::Filesystem),
    ("http/", Family::Http),
    ("command/exec", Family::App),
    ("config/read", Family::App),
];

impl Method {
    /// All methods.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Initialize; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].method;
            index += 1;
        }
        all
    };

    /// The method with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.method)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The family, which determines the error before the handshake.
    pub fn family(self) -> Family {
        self.row().family
    }

    /// The ordering relative to other requests.
    pub fn lane(self) -> Lane {
        self.row().lane
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
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
