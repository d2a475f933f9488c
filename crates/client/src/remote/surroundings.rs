//! What it is like where the server is, as far as it says.

use std::path::PathBuf;

use outpost_protocol::{Empty, Method, Surroundings, code};

use super::core::Core;
use crate::Error;

impl Core {
    /// What it is like there. Nobody is asked before somebody wants to know, and
    /// then once.
    pub(super) async fn environment(&self) -> Result<Surroundings, Error> {
        let welcome = self.welcome.get();
        let told = welcome.and_then(|welcome| welcome.environment_info.as_ref());
        if let Some(known) = told.or_else(|| self.surroundings.get()) {
            return self.line().await.map(|_| known.clone());
        }
        let asked = || self.again(Method::EnvironmentInfo, &Empty {});
        self.surroundings.get_or_try_init(asked).await.cloned()
    }

    /// Where relative paths begin.
    pub(super) async fn base(&self) -> Result<PathBuf, Error> {
        let cwd = match self.environment().await {
            Ok(surroundings) => surroundings.cwd,
            Err(Error::Refused { code, .. }) if code == code::METHOD_NOT_FOUND => None,
            Err(error) => return Err(error),
        };
        cwd.map(|cwd| cwd.into_path()).ok_or(Error::NoDirectory)
    }
}
