//! Confines processes: what they may do, and how this host enforces it.
//!
//! Three layers. A [`policy`] is what a client asks for, in portable terms. A [`Plan`] is a policy bound
//! to this host's paths, as plain data ([`planning`]). Enforcement is the host's: on Linux, namespaces
//! created by bubblewrap, and inside them Landlock and seccomp (`linux`).
//!
//! [`Sandbox::prepare_process`] and [`PreparedProcess::start`] start a sandboxed process.

mod denial;
mod error;
mod floor;
mod linux;
mod narrowing;
mod plan;
pub mod planning;
pub mod policy;
mod serde_as_bytes;

pub use denial::is_denied;
pub use error::{PrepareError, SandboxError};
pub use floor::{Excess, Floor};
pub use linux::{
    GrantRecordError, HelperCommand, HelperProcess, HostResources, HostSupport, LaunchError,
    Mounter, PASSED_FD, PlaceholderError, PreparedHelper, PreparedProcess, Program, Remedy,
    RemovedPlaceholders, Sandbox, SandboxRequest, Step, TurnKey, Unenforceable, WorkerAccess,
    is_placeholder, landlock_version, run_helper,
};
pub use narrowing::{BoundingRoot, WithinRoots};
pub use outpost_types::sandbox::{Access, Level, Network};
pub use plan::{Identity, Link, Origin, PathState, Plan, Rule, Warning};
