//! What a confined process may do, and how this host sees to it.
//!
//! Three layers. A policy is what a client asks for, in portable terms. A [`Plan`] is the same bound
//! to the paths of this host, as plain data. What enforces a plan is the host's: on Linux the
//! namespaces of bubblewrap, and inside them Landlock and seccomp ([`linux`]).

mod denial;
mod level;
mod linux;
mod plan;
pub mod planning;
pub mod policy;
mod refusal;

pub use denial::is_denied;
pub use level::Level;
pub use linux::{
    Confined, Heard, Hold, Line, Means, Mounter, Own, PlaceholderError, PrepareError, Program,
    Remains, Remedy, Report, Said, Sandbox, StageCommand, Step, Unenforceable, is_placeholder,
    landlock_version, stage,
};
pub use plan::{Access, Identity, Link, Network, Plan, Presence, Rule, Warning, Why};
pub use refusal::Refusal;
