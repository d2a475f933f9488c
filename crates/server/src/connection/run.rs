//! The task that reads a connection.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use outpost_rpc::{CloseReason, Framing, Inbound, InboundError, MemoryCharge, Received, outbox};

use super::{Connection, dispatch::Dispatch};
use crate::{
    ConnectionEnd,
    audit::ConnectionAudit,
    auth::Identity,
    server::{ServerState, Transport},
};

/// Approximate memory of a connection, which is scattered over the heap.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// Serves a connection until either side ends it.
pub(crate) async fn run(server: Arc<ServerState>, transport: Transport) -> ConnectionEnd {
    let settings = &server.settings;
    let framing = transport.framing;
    let silence = matches!(framing, Framing::WebSocket(_)).then_some(settings.silence_timeout);
    let memory = server.memory.share(transport.peer);
    let handshake_limit = settings.max_handshake_bytes;
    let mut inbound =
        Inbound::new(transport.read, framing, handshake_limit, silence).with_memory(&memory);
    if silence.is_some() {
        inbound = inbound.with_message_timeout(settings.message_timeout);
    }
    inbound.already_received(&transport.early);
    let identity = transport.identity;
    let principal = settings.auth.principal(transport.peer, identity.as_ref());
    let audit = ConnectionAudit::new(settings.audit.as_ref(), &principal.name, &transport.address);
    let mut connected = audit.connected();
    let connection = Connection::new(
        &server,
        (transport.peer, principal, audit),
        memory,
        inbound.read_counter(),
        silence.is_some(),
    );
    if let Some(permit) = &transport.permit {
        permit.set_connection(&connection);
    }
    if let Some(identity) = identity {
        server
            .tasks
            .spawn(watch_credential(Arc::clone(&connection), identity));
    }
    let outbox = &connection.outbox;
    let mut writer = server.tasks.spawn(outbox::deliver(
        outbox.clone(),
        transport.write,
        framing,
        settings.writer,
    ));
    let mut dispatch = Dispatch::new(Arc::clone(&connection), framing);

    let mut input_ended = false;
    let reason = {
        let mut ending = pin!(server.ending.cancelled());
        let mut lost = pin!(connection.gone.cancelled());
        let mut replaced = pin!(connection.replaced.cancelled());
        let mut unauthorized = pin!(connection.unauthorized.cancelled());
        let mut gives_way = pin!(connection.gives_way.cancelled());
        let mut unread = pin!(connection.unread.cancelled());
        loop {
            let read = async {
                // A peer that does not read its responses times out like a silent one.
                match silence {
                    Some(allowed) => tokio::time::timeout(allowed, outbox.wait_below_limit())
                        .await
                        .map_err(|_| InboundError::Silent(allowed))?,
                    None => outbox.wait_below_limit().await,
                }
                inbound.next().await
            };
            let received = tokio::select! {
                biased;
                () = &mut ending => break CloseReason::GoingAway,
                () = &mut lost => break CloseReason::Normal,
                () = &mut replaced => break if connection.probe_failed.load(Ordering::Acquire) {
                    // No other connection has the session yet; the client may resume it.
                    CloseReason::Normal
                } else {
                    CloseReason::TakenOver
                },
                () = &mut unauthorized => break CloseReason::Unauthorized,
                () = &mut gives_way => break CloseReason::GivesWay,
                () = &mut unread => {
                    tracing::warn!(
                        peer = ?connection.peer,
                        "closing a connection that does not read; others need its memory"
                    );
                    break CloseReason::Unread;
                }
                received = read => received,
            };
            match received {
                Ok(Some(Received::Message(message))) => {
                    connection.record_message();
                    let charge = inbound.take_charge();
                    let freed = charge.as_ref().map_or(0, MemoryCharge::bytes);
                    dispatch.message(&message, charge).await;
                    drop(message);
                    server.engine.memory_freed(freed as u64);
                    if dispatch.is_initialized() {
                        inbound.raise_limit(settings.max_message_bytes);
                    }
                }
                Ok(Some(Received::Skipped(reason, id))) => dispatch.skipped(reason, id),
                Ok(Some(Received::Ping(payload))) => outbox.pong(payload),
                Ok(Some(Received::Pong)) => {}
                Ok(None) => {
                    input_ended = true;
                    break CloseReason::Normal;
                }
                Ok(Some(Received::Close(..))) => break CloseReason::Normal,
                // A peer is not silent while the server does not read or ping.
                Err(InboundError::Silent(allowed) | InboundError::Stalled(allowed))
                    if server.engine.was_stopped_within(allowed) =>
                {
                    tracing::debug!("the server was stopped; waiting for the peer again");
                    outbox.ping();
                    inbound.restart_timeouts();
                }
                Err(error) => {
                    tracing::debug!(%error, "connection lost");
                    break match error {
                        InboundError::WebSocket(_) => CloseReason::ProtocolError,
                        _ => CloseReason::Normal,
                    };
                }
            }
        }
    };

    // A client that closed its end of a pipe still reads the remaining responses.
    if input_ended && framing == Framing::Lines {
        let finished = dispatch.all_requests_finished();
        let _ = tokio::time::timeout(settings.final_responses_timeout, finished).await;
    }
    if connection.replaced.is_cancelled() {
        connection.long_polls.close();
        let finished = connection.long_polls.wait();
        let _ = tokio::time::timeout(settings.writer.close_timeout, finished).await;
    }
    outbox.close(reason);
    connected.reason = reason.name();
    drop(connected);
    dispatch.end();
    // The close frame is lost if the peer does not read.
    let closed = tokio::time::timeout(settings.writer.close_timeout * 2, &mut writer).await;
    if closed.is_err() {
        writer.abort();
    }
    server.engine.memory_freed(CONNECTION_BYTES);
    match reason {
        CloseReason::TakenOver => ConnectionEnd::Replaced,
        _ => ConnectionEnd::Closed,
    }
}

/// Reports that the credential of a connection has expired or was revoked. In a task of its own, because the
/// connection's task can wait for the admission of a request.
async fn watch_credential(connection: Arc<Connection>, identity: Identity) {
    let auth = &connection.server.settings.auth;
    tokio::select! {
        () = auth.wait_until_invalid(&identity) => connection.unauthorized.cancel(),
        () = connection.gone.cancelled() => {}
    }
}
