//! Undoes a start whose caller stops waiting.

use std::sync::Arc;

use outpost_protocol::{Method, StartParams, StartResult};

use super::{ProcessTable, RemoteProcess};
use crate::{
    Error,
    remote::connection::{CallError, Connection, PendingRequest, PendingStart, Response},
};

/// A start in progress. If it is dropped before it is done, the process is removed and, if the
/// server has started it, terminated.
pub(crate) struct StartGuard<'a> {
    table: &'a ProcessTable,
    process: Arc<RemoteProcess>,
    generated_id: bool,
    /// The pending response, once the request was sent.
    response: Option<Response>,
    done: bool,
}

impl<'a> StartGuard<'a> {
    /// Inserts a process that is about to be started.
    pub(crate) fn new(
        table: &'a Arc<ProcessTable>,
        id: &str,
        generated_id: bool,
    ) -> Result<Self, Error> {
        Ok(StartGuard {
            process: table.insert_starting(id)?,
            table,
            generated_id,
            response: None,
            done: false,
        })
    }

    /// Sends the request and waits for the response.
    pub(crate) async fn start(
        mut self,
        connection: &Connection,
        params: &StartParams,
    ) -> Result<Arc<RemoteProcess>, CallError> {
        let start = PendingStart {
            id: params.process_id.clone(),
            generated_id: self.generated_id,
        };
        let (request, response) = PendingRequest::call(Method::ProcessStart, Some(start));
        connection.request(Method::ProcessStart, params, request)?;
        let response = self.response.insert(response);
        let result: Result<StartResult, _> =
            connection.response(Method::ProcessStart, response).await;
        self.response = None;
        match &result {
            Ok(_) => {
                self.done = true;
                self.process.set_started(Ok(()));
            }
            Err(CallError::InvalidResponse(..)) => self.terminate(),
            // The server may have started it. The receiver has it terminated after the
            // reconnect; until then its events are discarded.
            Err(CallError::Lost(_)) => self.table.orphan(&self.process),
            Err(CallError::Rejected(_)) => {}
        }
        result.map(|_| Arc::clone(&self.process))
    }

    fn terminate(&self) {
        self.table.orphan(&self.process);
        self.table.terminate_orphan(self.process.id());
    }
}

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let id = self.process.id();
        // An earlier, abandoned start may still have to be terminated under this id.
        self.table.remove(&self.process).orphan_if_terminating(id);
        self.process
            .fail(Error::UnknownProcess { id: id.to_owned() });
        let Some(mut response) = self.response.take() else {
            return;
        };
        // From here on, the receiver notices that no caller waits.
        response.close();
        match response.try_recv() {
            Ok(Ok(_)) => self.terminate(),
            Ok(Err(_)) => {}
            // The response is still to come. With an id chosen by the caller, the process may be
            // another one, so only the response tells whether to terminate it.
            Err(_) if self.generated_id => self.terminate(),
            Err(_) => self.table.orphan(&self.process),
        }
    }
}
