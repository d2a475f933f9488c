//! The task that reads a connection: completes requests, dispatches notifications.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_journal::{Chunk, Event, Exit, OutputEnd, Seq};
use outpost_protocol::{
    ErrorKind, FS_CHANGED, FromServer, HTTP_BODY_DELTA, InvalidParams, MAX_MESSAGE_BYTES, Method,
    NoMemory, PROCESS_CLOSED, PROCESS_EXITED, ProcessClosed, ProcessExited, RequestId, RpcError,
    encode_error, parse_params,
};
use outpost_rpc::{
    CloseReason, Framing, Inbound, InboundError, OutgoingMessage, PeerActivity, Received,
    SkipReason, outbox,
};
use serde_json::value::RawValue;
use tokio::{process::Child, task::JoinSet};

use super::{CallError, Connection, PendingRequest, dial::Transport};
use crate::{
    error::error_data,
    remote::{
        ReconnectFailure, process_table::ProcessTable, recovery::LossReason, session::Session,
    },
};

/// WebSocket close code of a server whose session another connection has taken over.
const TAKEN_OVER: u16 = 4001;
/// WebSocket close code of a server that no longer accepts the client's token.
const TOKEN_ENDED: u16 = 4401;

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
    let silence_timeout =
        matches!(framing, Framing::WebSocket(_)).then_some(limits.silence_timeout);
    let mut inbound = Inbound::new(read, framing, MAX_MESSAGE_BYTES, silence_timeout);
    inbound.already_received(&early);
    let options = outbox::WriterOptions {
        close_timeout: limits.close_timeout,
        // A healthy server answers within the time of the notice.
        ping_interval: limits.silence_notice * 2 / 3,
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
        pinged: silence_timeout.is_some(),
        writer,
        child,
    };
    session.tasks.spawn(receiver.run());
}

/// The task that receives the messages of a connection.
struct Receiver {
    table: Arc<ProcessTable>,
    connection: Arc<Connection>,
    inbound: Inbound,
    /// The server answers pings; not on stdio.
    pinged: bool,
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
        let activity = self.pinged.then(|| self.inbound.read_counter());
        let connection = Arc::clone(&self.connection);
        let loss = tokio::select! {
            loss = self.receive() => loss,
            never = watch_silence(session, &connection, activity) => match never {},
            () = session.closing.cancelled() => {
                // Sends a close frame after everything that is queued.
                self.connection.outbox.close(CloseReason::Normal);
                // The timeout is for a peer that does not read.
                let timeout = limits.close_timeout * 2;
                let _ = tokio::time::timeout(timeout, self.writer.join_next()).await;
                LossReason::permanent("the executor was closed")
            }
        };
        self.writer.abort_all();
        let unanswered_starts = self.connection.fail(loss);
        table.add_orphaned_starts(unanswered_starts);
        self.connection.closed.cancel();
        if let Some(child) = self.child.take() {
            // The child ends when its streams do; the writer and `inbound` own them.
            while self.writer.join_next().await.is_some() {}
            drop(self.inbound);
            wait_or_kill(child, limits.child_exit_timeout).await;
        }
    }

    async fn receive(&mut self) -> LossReason {
        let going_away = CloseReason::GoingAway.code();
        loop {
            let received = tokio::select! {
                biased;
                () = self.connection.broken.cancelled() => {
                    return LossReason::temporary("writing to the connection failed");
                }
                received = self.inbound.next() => received,
            };
            let handled = match received {
                Ok(Some(Received::Message(message))) => self.dispatch(&message),
                Ok(Some(Received::Ping(payload))) => {
                    self.connection.outbox.pong(payload);
                    Ok(None)
                }
                Ok(Some(Received::Pong)) => Ok(None),
                Ok(Some(Received::Skipped(SkipReason::TooLong, _))) => {
                    Err("the server sent a message that is too large".to_owned())
                }
                // Overloaded: only with a limit on memory, which this side has not.
                Ok(Some(Received::Skipped(SkipReason::NoMemory | SkipReason::Overloaded, _))) => {
                    Err(format!("failed to hold a message: {NoMemory}"))
                }
                Ok(Some(Received::Close(Some(TAKEN_OVER), _))) => {
                    let _ = self
                        .table
                        .session
                        .ended_by_server
                        .set(ReconnectFailure::TakenOver);
                    return LossReason::permanent(
                        "the session was taken over by another connection",
                    );
                }
                // Without the reason text it comes from a proxy that restarts.
                Ok(Some(Received::Close(code, reason)))
                    if (code, &*reason) == (Some(going_away.0), going_away.1.as_bytes()) =>
                {
                    // Its sessions end with it, so that there is nothing to come back to.
                    let _ = self
                        .table
                        .session
                        .ended_by_server
                        .set(ReconnectFailure::ShutDown);
                    return LossReason::permanent("the server is shutting down");
                }
                // A new connection reads the token again; it may have been replaced.
                Ok(Some(Received::Close(Some(TOKEN_ENDED), _))) => {
                    Err("the server no longer accepts the token".to_owned())
                }
                Ok(Some(Received::Close(code, _))) => {
                    let code = code.map_or_else(String::new, |code| format!(" with code {code}"));
                    Err(format!("the server closed the connection{code}"))
                }
                Ok(None) => Err("the connection ended".to_owned()),
                Err(InboundError::Io(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match handled {
                Ok(None) => {}
                Ok(Some(response)) => {
                    // Backpressure: a server that does not read its responses is not read.
                    let Connection { outbox, broken, .. } = &*self.connection;
                    tokio::select! {
                        () = outbox.wait_below_limit() => outbox.send(response),
                        () = broken.cancelled() => {}
                    }
                }
                Err(reason) => return LossReason::temporary(reason),
            }
        }
    }

    /// Handles a message and returns the response to a request of the server. Fails if a caller
    /// would otherwise wait forever.
    fn dispatch(&self, message: &Bytes) -> Result<Option<OutgoingMessage>, String> {
        match FromServer::parse(message) {
            // Decoded without an intermediate `RawValue`.
            Ok(FromServer::Output(output)) => {
                let event = Event::Output(Chunk {
                    seq: Seq(output.seq),
                    stream: output.stream,
                    bytes: output.chunk.into_owned().into(),
                });
                self.event(&output.process_id, event, false);
            }
            Ok(FromServer::Notification { method, params }) => {
                if let Err(error) = self.notification(&method, params) {
                    tracing::warn!(%error, method = &*method, "invalid notification");
                }
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

    /// Handles any notification but `process/output`.
    fn notification(&self, method: &str, params: Option<&RawValue>) -> Result<(), InvalidParams> {
        match method {
            PROCESS_EXITED => {
                let exited: ProcessExited = parse_params(params)?;
                let exit = Exit {
                    code: exited.exit_code,
                    sandbox_denied: exited.sandbox_denied.unwrap_or_default(),
                    ended_by: exited.ended_by,
                    usage: exited.usage,
                };
                let seq = Seq(exited.seq);
                // Older servers tell `sandbox_denied` in the response to a read.
                let incomplete = exited.sandbox_denied.is_none();
                self.event(&exited.process_id, Event::Exited { seq, exit }, incomplete);
            }
            PROCESS_CLOSED => {
                let closed: ProcessClosed = parse_params(params)?;
                let (seq, end) = (Seq(closed.seq), OutputEnd::Whole);
                self.event(&closed.process_id, Event::Closed { seq, end }, false);
            }
            HTTP_BODY_DELTA => self.connection.bodies.receive(parse_params(params)?),
            FS_CHANGED => self.connection.watches.changed(parse_params(params)?),
            _ => {}
        }
        Ok(())
    }

    fn event(&self, process_id: &str, event: Event, incomplete: bool) {
        let table = &self.table;
        table.receive(&self.connection, process_id, event, incomplete);
    }

    /// Handles an error without a request id: it belongs to the only pending request, if there
    /// is exactly one.
    fn unattributed_error(&self, error: RpcError) -> Result<(), String> {
        if error_data(&error).kind == ErrorKind::UnexpectedMessage {
            tracing::debug!(%error, "server error without a request");
            return Ok(());
        }
        match *self.connection.pending_ids() {
            [] => tracing::warn!(%error, "server error without a request"),
            [id] => self.complete(&RequestId::Integer(id), Err(error)),
            _ => {
                return Err(format!(
                    "the server did not understand one of several requests: {error}"
                ));
            }
        }
        Ok(())
    }

    /// Handles a message that can't be decoded. It may be the response to a pending request.
    fn invalid_message(&self, message: &Bytes, error: serde_json::Error) -> Result<(), String> {
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
                Some(request) => self.finish(request, |method| {
                    Err(CallError::InvalidResponse(method.name(), error))
                }),
                None => tracing::warn!(%error, id, "invalid response to an unknown request"),
            },
            _ if self.connection.pending_ids().is_empty() => {
                tracing::warn!(%error, "invalid message from the server");
            }
            _ => return Err(format!("invalid message from the server: {error}")),
        }
        Ok(())
    }

    fn complete(&self, id: &RequestId, response: Result<Bytes, RpcError>) {
        let request = match id {
            RequestId::Integer(id) => self.connection.take_request(*id),
            _ => None,
        };
        match request {
            Some(request) => self.finish(request, |_| response.map_err(CallError::Rejected)),
            None => tracing::debug!(?id, "response to an unknown request"),
        }
    }

    fn finish(
        &self,
        request: PendingRequest,
        response: impl FnOnce(Method) -> Result<Bytes, CallError>,
    ) {
        match request {
            PendingRequest::Call {
                method,
                reply,
                start,
            } => {
                let response = response(method);
                let rejected = matches!(response, Err(CallError::Rejected(_)));
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

/// Reports a server that sends nothing although it is pinged, and when it sends again.
async fn watch_silence(
    session: &Session,
    connection: &Connection,
    activity: Option<PeerActivity>,
) -> Infallible {
    let Some(activity) = activity else {
        return std::future::pending().await;
    };
    loop {
        let count = activity.count();
        tokio::time::sleep(session.options.limits.silence_notice).await;
        if activity.count() == count {
            session.set_responsive(connection, false);
            activity.changed_from(count).await;
            session.set_responsive(connection, true);
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
