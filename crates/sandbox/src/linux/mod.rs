//! Enforces a plan on Linux.
//!
//! Bubblewrap creates namespaces and executes the [`helper`] in them. The helper mounts what the plan
//! grants, so that nothing else is visible, drops its capabilities, restricts itself with [`landlock`]
//! and [`seccomp`], and executes the program. On hosts where the helper isn't allowed to mount,
//! [`bubblewrap`] makes the mounts.
//!
//! - [`preflight`]: probes what this host supports
//! - [`sandbox`]: plans and prepares a confined process in the server
//! - [`plans`]: makes plans with the server's own paths and its record of grants
//! - [`preparations`], [`turns`]: run preparations on threads, in turn by client
//! - [`plan_check`]: checks that a plan can be enforced
//! - [`launch`]: starts the process, and holds what it needs on the host while it lives
//! - [`mounts`]: derives the mounts from a plan, and verifies them inside
//! - [`supervisor`]: makes the connections of confined processes that have unix sockets
//! - [`placeholder`]: mount points at paths that must stay absent
//! - [`nofollow`]: opens paths without following symbolic links; [`sys`]: system calls

mod bubblewrap;
mod helper;
mod landlock;
mod launch;
mod mounts;
pub(crate) mod nofollow;
pub(crate) mod placeholder;
mod plan_check;
mod plans;
mod preflight;
mod preparations;
mod sandbox;
mod seccomp;
mod supervisor;
mod sys;
mod turns;

pub use bubblewrap::Mounter;
pub use helper::{HelperCommand, Program, Step, main as run_helper};
pub use launch::{HelperProcess, HostResources, LaunchError, PreparedHelper, PreparedProcess};
pub use placeholder::{PlaceholderError, RemovedPlaceholders, is_placeholder};
pub use preflight::{HostSupport, Remedy, Unenforceable};
pub use sandbox::{Sandbox, SandboxRequest, WorkerAccess};
pub use sys::landlock_version;
