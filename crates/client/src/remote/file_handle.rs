//! A handle of the wire on a file.

use std::sync::{Arc, atomic::Ordering};

use outpost_protocol::{
    Empty, FsCloseParams, FsCreateStreamParams, FsOpenParams, FsOpenResult, Method,
};
use tokio::sync::oneshot;

use super::{
    core::Core,
    line::{CallError, Line},
};

/// A handle on one connection, with which it ends; dropping it closes the file.
pub(super) struct FileHandle {
    pub(super) line: Arc<Line>,
    pub(super) id: String,
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        self.line.close_file(&FsCloseParams {
            handle_id: std::mem::take(&mut self.id),
        });
    }
}

/// What a handle is for.
pub(super) enum Purpose {
    Read(FsOpenParams),
    Write(FsCreateStreamParams),
}

impl Core {
    /// Gets a handle. A close overtakes whatever is asked before it, so it can't be
    /// sent before the answer has come: a task waits for that, even if nobody else
    /// does any more. It ends with its connection at the latest.
    pub(super) async fn file_handle(
        self: &Arc<Self>,
        line: &Arc<Line>,
        mut purpose: Purpose,
    ) -> Result<FileHandle, CallError> {
        let number = self.names.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-f{number}", self.prefix);
        let (answer, answered) = oneshot::channel();
        let line = Arc::clone(line);
        self.tasks.spawn(async move {
            let outcome = match &mut purpose {
                Purpose::Read(params) => {
                    params.handle_id.clone_from(&id);
                    let opened = line.call::<FsOpenResult>(Method::FsOpen, params).await;
                    opened.map(|_| ())
                }
                Purpose::Write(params) => {
                    params.handle_id.clone_from(&id);
                    let created = line.call::<Empty>(Method::FsCreateStream, params).await;
                    created.map(|_| ())
                }
            };
            // Who doesn't wait any more drops the handle, which closes the file.
            let _ = answer.send(outcome.map(|()| FileHandle { line, id }));
        });
        let gone = |_| Err(CallError::Lost("the place is gone".to_owned()));
        answered.await.unwrap_or_else(gone)
    }
}
