//! Servers that run on an executor.

use std::sync::Arc;

use outpost_client::Place;

use super::{Launcher, Launching, Placing};
use crate::{Command, Limits, ProcessTransport, parting};

/// Starts servers in any place where processes run. They are asked to end with their
/// transport, and killed 2 s later.
pub struct ExecutorLauncher {
    place: Arc<dyn Place>,
}

impl ExecutorLauncher {
    /// In this place.
    #[must_use]
    pub fn new(place: Arc<dyn Place>) -> Self {
        ExecutorLauncher { place }
    }
}

impl Launcher for ExecutorLauncher {
    fn launch<'a>(
        &'a self,
        name: &'a str,
        command: &'a Command,
        limits: &'a Limits,
    ) -> Launching<'a> {
        Box::pin(async move {
            let start = command.start_there(|name| std::env::var_os(name))?;
            let process = parting::start(&*self.place, start).await?;
            Ok(ProcessTransport::new(name, process, limits))
        })
    }

    fn place(&self) -> Placing<'_> {
        Box::pin(async { Ok(Arc::clone(&self.place)) })
    }
}
