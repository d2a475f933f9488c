//! Handles of open files on a server.

use std::sync::Arc;

use outpost_protocol::{
    Empty, FsCloseParams, FsCreateStreamParams, FsOpenParams, FsOpenResult, Method,
};
use tokio::sync::oneshot;

use super::{
    connection::{CallError, Connection},
    session::Session,
};

/// An open file on the server, valid on its connection only. Dropping it closes the file.
pub(super) struct FileHandle {
    pub(super) connection: Arc<Connection>,
    pub(super) id: String,
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        self.connection.close_file(&FsCloseParams {
            handle_id: std::mem::take(&mut self.id),
        });
    }
}

/// Why a file is opened.
pub(super) enum Purpose {
    Read(FsOpenParams),
    Write(FsCreateStreamParams),
}

impl FileHandle {
    /// Opens a handle. A task waits for the response, even if the caller stops waiting: a close
    /// can overtake earlier requests, so it must not be sent before the response.
    pub(super) async fn open(
        session: &Session,
        connection: &Arc<Connection>,
        mut purpose: Purpose,
    ) -> Result<Self, CallError> {
        let id = session.generate_id("f");
        let (reply, response) = oneshot::channel();
        let connection = Arc::clone(connection);
        session.tasks.spawn(async move {
            let outcome = match &mut purpose {
                Purpose::Read(params) => {
                    params.handle_id.clone_from(&id);
                    let opened = connection
                        .call::<FsOpenResult>(Method::FsOpen, params)
                        .await;
                    opened.map(|_| ())
                }
                Purpose::Write(params) => {
                    params.handle_id.clone_from(&id);
                    let created = connection
                        .call::<Empty>(Method::FsCreateStream, params)
                        .await;
                    created.map(|_| ())
                }
            };
            // If the caller has stopped waiting, this drops the handle, which closes the file.
            let _ = reply.send(outcome.map(|()| FileHandle { connection, id }));
        });
        let closed = |_| Err(CallError::Lost("the executor was closed".to_owned()));
        response.await.unwrap_or_else(closed)
    }
}
