//! The task that reads a connection: completes requests, dispatches notifications.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use outpost_protocol::{
    ErrorKind, FromServer, MAX_MESSAGE_BYTES, NoMemory, RequestId, RpcError, encode_error,
};
use outpost_rpc::{Framing, Inbound, InboundError, OutgoingMessage, Received, outbox};
use tokio::{process::Child, task::JoinSet};

use super::{Connection, PendingCount, PendingRequest, ResponseError, dial::Transport};
use crate::{
    error::error_data,
    remote::{notifications, process_table::ProcessTable, recovery::Loss},
};

/// WebSocket close code of a server whose session another connection has taken over.
const TAKEN_OVER: u16 = 4001;

/// The parts of an undecodable message that identify its receiver.
#[derive(serde::Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    method: Option<String>,
}

/// Starts the tasks that read and write a connection. They end with the session.
pub(crate) fn spawn(table: &Arc<ProcessTable>, connection: &Arc<Connection>, transport: Transport) {
    let Transport {
        read,
        write,
        framing,
        early,
        child,
    } = transport;
    let session = &table.session;
    let limits = &session.options.limits;
    let idle_timeout = matches!(framing, Framing::WebSocket(_)).then_some(limits.idle_timeout);
    let mut inbound = Inbound::new(read, framing, MAX_MESSAGE_BYTES, idle_timeout);
    inbound.already_received(&early);
    let options = outbox::WriterOptions {
        close_timeout: limits.close_timeout,
        ..outbox::WriterOptions::default()
    };
    let outbox = connection.outbox.clone();
    let mut writer = JoinSet::new();
    let writing = outbox::deliver(outbox, write, framing, options);
    writer.spawn(session.tasks.track_future(writing));
    let receiver = Receiver {
        table: Arc::clone(table),
        connection: Arc::clone(connection),
        inbound,
        writer,
        child,
    };
    session.tasks.spawn(receiver.run());
}

struct Receiver {
    table: Arc<ProcessTable>,
    connection: Arc<Connection>,
    inbound: Inbound,
    /// The task that writes. Empty once it has been joined.
    writer: JoinSet<()>,
    /// The server, if it was launched for this connection.
    child: Option<Child>,
}

impl Receiver {
    async fn run(mut self) {
        let table = Arc::clone(&self.table);
        let session = &table.session;
        let limits = &session.options.limits;
        let loss = tokio::select! {
            loss = self.receive() => loss,
            () = session.closing.cancelled() => {
                self.connection.close();
                // The timeout is for a peer that does not read.
                let timeout = limits.close_timeout * 2;
                let _ = tokio::time::timeout(timeout, self.writer.join_next()).await;
                permanent("the executor was closed")
            }
        };
        self.writer.abort_all();
        let unanswered_starts = self.connection.fail(loss);
        table.add_orphaned_starts(unanswered_starts);
        self.connection.notify_closed();
        if let Some(child) = self.child.take() {
            // The child ends when its streams do; the writer and `inbound` own them.
            while self.writer.join_next().await.is_some() {}
            drop(self.inbound);
            wait_or_kill(child, limits.child_exit_timeout).await;
        }
    }

    async fn receive(&mut self) -> Loss {
        loop {
            let received = tokio::select! {
                biased;
                () = self.connection.broken.cancelled() => {
                    return temporary("writing to the connection failed");
                }
                received = self.inbound.next() => received,
            };
            match received {
                Ok(Some(Received::Message(message))) => {
                    let response = match self.dispatch(&message) {
                        Ok(response) => response,
                        Err(loss) => return loss,
                    };
                    if let Some(response) = response {
                        // Backpressure: a server that does not read its responses is not read.
                        let Connection { outbox, broken, .. } = &*self.connection;
                        tokio::select! {
                            () = outbox.wait_below_limit() => outbox.send(response),
                            () = broken.cancelled() => {}
                        }
                    }
                }
                Ok(Some(Received::Ping(payload))) => self.connection.outbox.pong(payload),
                Ok(Some(Received::Pong)) => {}
                Ok(Some(Received::TooLong)) => {
                    return temporary("the server sent a message that is too large");
                }
                Ok(Some(Received::NoMemory)) => {
                    return temporary(format!("failed to hold a message: {NoMemory}"));
                }
                Ok(Some(Received::Close(Some(TAKEN_OVER)))) => {
                    self.table.session.taken_over.store(true, Ordering::Release);
                    return permanent("the session was taken over by another connection");
                }
                Ok(Some(Received::Close(code))) => {
                    let code = code.map_or_else(String::new, |code| format!(" with code {code}"));
                    return temporary(format!("the server closed the connection{code}"));
                }
                Ok(None) => return temporary("the connection ended"),
                Err(InboundError::Io(error)) => return temporary(error.to_string()),
                Err(error) => return temporary(error.to_string()),
            }
        }
    }

    /// Handles a message and returns the response to a request of the server. Fails if a caller
    /// would otherwise wait forever.
    fn dispatch(&self, message: &Bytes) -> Result<Option<OutgoingMessage>, Loss> {
        match FromServer::parse(message) {
            Ok(FromServer::Output(output)) => {
                notifications::output(&self.table, &self.connection, output);
            }
            Ok(FromServer::Notification { method, params }) => {
                notifications::dispatch(&self.table, &self.connection, &method, params);
            }
            Ok(FromServer::Response { id, result }) => {
                self.complete(&id, Ok(message.slice_ref(result.get().as_bytes())));
            }
            Ok(FromServer::Error {
                id: None | Some(RequestId::UNATTRIBUTED),
                error,
            }) => self.unattributed_error(error)?,
            Ok(FromServer::Error {
                id: Some(id),
                error,
            }) => self.complete(&id, Err(error)),
            Ok(FromServer::Request { id, method }) => {
                let mut response = Vec::new();
                encode_error(&mut response, &id, &RpcError::method_not_found(&method));
                return Ok(Some(OutgoingMessage::new(response)));
            }
            Err(error) => self.invalid_message(message, error)?,
        }
        Ok(None)
    }

    /// Handles an error without a request id: it belongs to the only pending request, if there
    /// is exactly one.
    fn unattributed_error(&self, error: RpcError) -> Result<(), Loss> {
        if error_data(&error).kind == ErrorKind::UnexpectedMessage {
            tracing::debug!(%error, "server error without a request");
            return Ok(());
        }
        match self.connection.pending_count() {
            PendingCount::None => tracing::warn!(%error, "server error without a request"),
            PendingCount::One(id) => self.complete(&RequestId::Integer(id), Err(error)),
            PendingCount::Many => {
                return Err(temporary(format!(
                    "the server did not understand one of several requests: {error}"
                )));
            }
        }
        Ok(())
    }

    /// Handles a message that can't be decoded. It may be the response to a pending request.
    fn invalid_message(&self, message: &Bytes, error: serde_json::Error) -> Result<(), Loss> {
        match serde_json::from_slice::<Envelope>(message) {
            // A missing event is noticed by its number and read again.
            Ok(Envelope {
                method: Some(method),
                ..
            }) => tracing::warn!(%error, method, "invalid notification"),
            Ok(Envelope {
                id: Some(RequestId::Integer(id)),
                ..
            }) => match self.connection.take_request(id) {
                Some(request) => self.finish(request, Err(ResponseError::Invalid(error))),
                None => tracing::warn!(%error, id, "invalid response to an unknown request"),
            },
            _ if self.connection.pending_count() == PendingCount::None => {
                tracing::warn!(%error, "invalid message from the server");
            }
            _ => {
                return Err(temporary(format!(
                    "invalid message from the server: {error}"
                )));
            }
        }
        Ok(())
    }

    fn complete(&self, id: &RequestId, response: Result<Bytes, RpcError>) {
        let request = match id {
            RequestId::Integer(id) => self.connection.take_request(*id),
            _ => None,
        };
        match request {
            Some(request) => self.finish(request, response.map_err(ResponseError::Rejected)),
            None => tracing::debug!(?id, "response to an unknown request"),
        }
    }

    fn finish(&self, request: PendingRequest, response: Result<Bytes, ResponseError>) {
        match request {
            PendingRequest::Call { reply, start } => {
                let rejected = matches!(response, Err(ResponseError::Rejected(_)));
                // Sending fails if the caller has stopped waiting.
                if let (Err(_), Some(start)) = (reply.send(response), start) {
                    self.table.finish_abandoned_start(&start, rejected);
                }
            }
            PendingRequest::Terminate(id) => self.table.termination_confirmed(&id),
            PendingRequest::Ignored => {}
        }
    }
}

/// Waits for a launched server, which ends with its input, and kills it after the timeout.
async fn wait_or_kill(mut child: Child, timeout: Duration) {
    if tokio::time::timeout(timeout, child.wait()).await.is_err() {
        tracing::warn!(?timeout, "launched server did not exit; killing it");
        let _ = child.kill().await;
    }
}

fn temporary(reason: impl Into<String>) -> Loss {
    Loss {
        reason: reason.into(),
        permanent: false,
    }
}

fn permanent(reason: &str) -> Loss {
    Loss {
        reason: reason.to_owned(),
        permanent: true,
    }
}
