//! The scope that each method requires.

use outpost_protocol::{AccessScope, Method};

/// Returns the scope that a method requires, or `None` if every client may call it.
pub(crate) fn required_scope(method: Method) -> Option<AccessScope> {
    match method {
        // `session/list` decides by itself. `fs/close` closes what the connection has opened for reading or
        // for writing.
        Method::Initialize
        | Method::EnvironmentInfo
        | Method::EnvironmentStatus
        | Method::SessionClose
        | Method::SessionList
        | Method::SessionLease
        | Method::ConfigRead
        | Method::FsClose => None,
        Method::ProcessStart
        | Method::ProcessRead
        | Method::ProcessWrite
        | Method::ProcessSignal
        | Method::ProcessTerminate
        | Method::ProcessResize
        | Method::ProcessList
        | Method::ProcessNetwork
        | Method::ProcessSpawn
        | Method::ProcessWriteStdin
        | Method::ProcessResizePty
        | Method::ProcessKill
        | Method::CommandExec
        | Method::CommandExecWrite
        | Method::CommandExecResize
        | Method::CommandExecTerminate => Some(AccessScope::Exec),
        // These methods read files of the host.
        Method::EnvironmentConfigRead
        | Method::CapabilityRootsDiscover
        | Method::CapabilitiesDiscover
        | Method::FsReadFile
        | Method::FsOpen
        | Method::FsReadBlock
        | Method::FsGetMetadata
        | Method::FsCanonicalize
        | Method::FsReadDirectory
        | Method::FsWalk => Some(AccessScope::FilesRead),
        Method::FsWriteFile
        | Method::FsCreateDirectory
        | Method::FsRemove
        | Method::FsCopy
        | Method::FsCreateStream
        | Method::FsWriteBlock
        | Method::FsCommit => Some(AccessScope::FilesWrite),
        Method::FsWatch | Method::FsUnwatch | Method::FsWatchMissing => Some(AccessScope::Watch),
        Method::HttpRequest => Some(AccessScope::Http),
    }
}
