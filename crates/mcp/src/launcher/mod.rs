//! Starting a server: here or on an executor, and no difference above.

mod executor;
mod local;

use std::{pin::Pin, sync::Arc};

use outpost_client::Place;

pub use executor::ExecutorLauncher;
pub use local::LocalLauncher;

use crate::{Command, CommandError, Limits, ProcessTransport};

/// A start on its way. Dropping it undoes the start.
pub type Launching<'a> =
    Pin<Box<dyn Future<Output = Result<ProcessTransport, LaunchError>> + Send + 'a>>;

/// A place on its way.
pub type Placing<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Place>, LaunchError>> + Send + 'a>>;

/// Starts servers somewhere.
pub trait Launcher: Send + Sync {
    /// Starts a server; `name` is for its log lines.
    fn launch<'a>(
        &'a self,
        name: &'a str,
        command: &'a Command,
        limits: &'a Limits,
    ) -> Launching<'a>;

    /// The place where they are started. Servers that are there already are
    /// spoken to from it.
    fn place(&self) -> Placing<'_>;
}

/// Why a server isn't running.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// It can't be started anywhere.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The place can't be reached, or can't start it.
    #[error("cannot start the server")]
    Place(#[from] outpost_client::Error),
}
