//! Calls, as far as they don't depend on which connection there is.

use outpost_protocol::Method;
use serde::{Serialize, de::DeserializeOwned};

use super::{core::Core, line::CallError};
use crate::Error;

impl Core {
    /// Makes a call that changes something. If the connection is lost before the
    /// answer nobody knows whether it did, so it isn't made again.
    pub(super) async fn once<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        let line = self.line().await?;
        Ok(line.call(method, params).await?)
    }

    /// Makes a call that may be made twice, until it is answered.
    pub(super) async fn again<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Error> {
        loop {
            let line = self.line().await?;
            match line.call(method, params).await {
                Err(CallError::Lost(_)) => {}
                answer => return Ok(answer?),
            }
        }
    }
}
