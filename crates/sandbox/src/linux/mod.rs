//! Enforces a plan on Linux.
//!
//! Bubblewrap creates namespaces and executes the [`helper`] in them. The helper mounts what the plan
//! grants, so that nothing else is visible, drops its capabilities, restricts itself with [`landlock`]
//! and [`seccomp`], and executes the program. On hosts where the helper isn't allowed to mount,
//! [`bubblewrap`] makes the mounts.
//!
//! - [`preflight`]: probes what this host supports; [`remedy`]: what to change if it doesn't
//! - [`sandbox`]: plans and prepares a sandboxed process in the server
//! - [`plans`]: makes plans with the server's own paths and the record of grants
//! - [`grant_record`]: stores which directories were ever granted for writing
//! - [`preparations`], [`turns`]: run preparations on threads, in turn by peer and client
//! - [`plan_check`]: checks that a plan can be enforced
//! - [`libraries`]: the files of the helper itself, if the plan hides them
//! - [`passed_files`]: the files that bubblewrap and the helper get
//! - [`launch`]: starts the process; [`host_resources`]: what it needs on the host while it lives
//! - [`mounts`]: derives the mounts from a plan, and verifies them inside
//! - [`supervisor`]: makes the connections of sandboxed processes that have unix sockets
//! - [`placeholder`]: mount points at paths that must stay absent
//! - [`nofollow`]: opens paths without following symbolic links; [`sys`]: system calls

mod bubblewrap;
mod grant_record;
mod helper;
mod host_resources;
mod landlock;
mod launch;
mod libraries;
mod mounts;
pub(crate) mod nofollow;
mod passed_files;
pub(crate) mod placeholder;
mod plan_check;
mod plans;
mod preflight;
mod preparations;
mod remedy;
mod sandbox;
mod seccomp;
mod supervisor;
mod sys;
mod turns;

pub use bubblewrap::Mounter;
pub use grant_record::GrantRecordError;
pub use helper::{HelperCommand, PASSED_FD, Program, Step, main as run_helper};
pub use host_resources::HostResources;
pub use launch::{HelperProcess, LaunchError, PreparedHelper, PreparedProcess};
pub use placeholder::{PlaceholderError, RemovedPlaceholders, is_placeholder};
pub use preflight::{HostSupport, Unenforceable};
pub use remedy::Remedy;
pub use sandbox::{Sandbox, SandboxRequest, WorkerAccess};
pub use sys::landlock_version;
pub use turns::TurnKey;
