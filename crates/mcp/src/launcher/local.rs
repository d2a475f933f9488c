//! Servers that run here.

use std::sync::Arc;

use outpost_client::Place;

use super::{Launcher, Launching, Placing};
use crate::{Command, Limits, ProcessTransport, parting};

/// Starts servers below this program, each in a process group of its own. They
/// are asked to end with their transport, and killed 2 s later.
pub struct LocalLauncher {
    place: Arc<dyn Place>,
}

impl LocalLauncher {
    /// In this place, which is this very program.
    #[must_use]
    pub fn new(place: Arc<dyn Place>) -> Self {
        LocalLauncher { place }
    }
}

impl Launcher for LocalLauncher {
    fn launch<'a>(
        &'a self,
        name: &'a str,
        command: &'a Command,
        limits: &'a Limits,
    ) -> Launching<'a> {
        Box::pin(async move {
            let start = command.start_here(|name| std::env::var_os(name))?;
            let process = parting::start(&*self.place, start).await?;
            Ok(ProcessTransport::new(name, process, limits))
        })
    }

    fn place(&self) -> Placing<'_> {
        Box::pin(async { Ok(Arc::clone(&self.place)) })
    }
}
