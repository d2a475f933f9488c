//! Enforces a plan on Linux.
//!
//! Bubblewrap creates namespaces and executes the [`helper`] in them. The helper mounts what the plan
//! grants, so that nothing else is visible, drops its capabilities, restricts itself with [`landlock`]
//! and [`seccomp`], and executes the program. On hosts where the helper isn't allowed to mount,
//! [`bubblewrap`] makes the mounts.
//!
//! - [`preflight`]: probes what this host supports
//! - [`sandbox`]: prepares a confined process in the server
//! - [`plan_check`]: checks that a plan can be enforced
//! - [`launch`]: plans, prepares and starts it
//! - [`mounts`]: derives the mounts from a plan, and verifies them inside
//! - [`placeholder`]: mount points at paths that must stay absent
//! - [`host_resources`]: what a confined process needs on the host while it lives
//! - [`nofollow`]: opens paths without following symbolic links

mod bubblewrap;
mod helper;
mod host_resources;
mod landlock;
mod launch;
mod mounts;
pub(crate) mod nofollow;
pub(crate) mod placeholder;
mod plan_check;
mod preflight;
mod sandbox;
mod seccomp;
mod sys;

pub use bubblewrap::Mounter;
pub use helper::{HelperCommand, Program, Step, main as run_helper};
pub use host_resources::HostResources;
pub use launch::{HelperProcess, LaunchError, PreparedProcess, SandboxRequest, WorkerAccess};
pub use placeholder::{PendingCleanup, PlaceholderError, is_placeholder};
pub use preflight::{HostSupport, Remedy, Unenforceable};
pub use sandbox::Sandbox;
pub use sys::landlock_version;
