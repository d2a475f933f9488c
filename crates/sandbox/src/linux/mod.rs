//! How a plan is enforced on Linux.
//!
//! Bubblewrap gives the process namespaces of its own. Inside them a stage of our own binary mounts
//! what the plan grants, so that nothing else exists, gives up the powers that this takes, puts up
//! Landlock and a filter of system calls, and becomes the program. Where a stage may not mount,
//! bubblewrap does it.
//!
//! - what decides: [`layout`], a plan as mounts, with [`host`] for what it must know; what
//!   [`bubblewrap`] is told; [`filter`] with the tables of [`calls`]; [`landlock`]
//! - what acts: [`sandbox`] in the server, with what it has to [`hold`]; [`stage`] in between, with
//!   [`orders`], [`report`] and the [`line`] they go over
//! - what goes in and comes out: [`confined`]; what they say of themselves: [`said`]
//! - [`preflight`]: whether this host can, and if not, why
//! - [`place`]: whether what is mounted is what was planned with
//! - [`placeholder`]: what stands where nothing may be created, and is taken away again, if need be
//!   out of a directory that is only [`ajar`]; [`standing`] has the paths of those there may
//!   be, and a [`keepsake`] is what holds them when the server is killed

mod ajar;
mod bubblewrap;
mod calls;
mod command;
mod confined;
mod filter;
mod hold;
mod host;
mod keepsake;
mod landlock;
mod layout;
mod line;
mod orders;
pub(crate) mod place;
pub(crate) mod placeholder;
mod preflight;
mod report;
mod said;
mod sandbox;
mod stage;
mod standing;
mod sys;

pub use bubblewrap::Mounter;
pub use command::StageCommand;
pub use confined::{Confined, Own, Program};
pub use hold::Hold;
pub use line::{Heard, Line};
pub use placeholder::{PlaceholderError, Remains, is_one_at as is_placeholder};
pub use preflight::{Means, Remedy, Unenforceable};
pub use report::{Report, Step};
pub use said::Said;
pub use sandbox::{PrepareError, Sandbox};
pub use stage::main as stage;
pub use sys::landlock_version;
