//! The methods that watch files.

use outpost_protocol::Method;

use super::{dispatch::Dispatch, unparsed_request::Request};
use crate::dialects::fs;

impl Dispatch {
    /// Serves `fs/watch`, `fs/unwatch` and `fs/watchMissing`. Returns `None` if the request was rejected
    /// before it was served.
    pub(super) fn serve_watch(&self, request: Request<'_>) -> Option<()> {
        match request.method {
            Method::FsWatch if self.is_app => {
                let (params, reply) = request.parse()?;
                fs::watch_native(&self.connection, params, reply);
            }
            Method::FsWatch => {
                let (params, reply) = request.parse()?;
                fs::watch(&self.files, params, reply);
            }
            Method::FsUnwatch => {
                let (params, reply) = request.parse()?;
                fs::unwatch(&self.connection, &params, reply);
            }
            Method::FsWatchMissing => {
                let (params, reply) = request.parse()?;
                fs::watch_missing(&self.connection, params, reply);
            }
            _ => return request.reject_method(),
        }
        Some(())
    }
}
