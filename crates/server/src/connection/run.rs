//! The task that reads a connection.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use outpost_protocol::Malformed;
use outpost_rpc::{CloseReason, Inbound, InboundError, Outbox, Received, outbox};
use tokio_util::sync::CancellationToken;

use super::{ConnectionLink, dispatch::Dispatch};
use crate::{Parting, Server, server::Transport};

/// Serves a connection until it ends, whoever ends it.
pub(crate) async fn run(server: Server, transport: Transport) -> Parting {
    let settings = server.settings().clone();
    let gone = CancellationToken::new();
    let outbox = Outbox::new(gone.clone());
    let _last = EndOnDrop(outbox.clone());
    let framing = transport.framing;
    let silence = matches!(framing, outpost_rpc::Framing::WebSocket(_)).then_some(settings.silence);
    let mut inbound = Inbound::new(transport.read, framing, settings.max_message_bytes, silence);
    inbound.already_received(&transport.early);
    let mut writer = server.tasks().spawn(outbox::deliver(
        outbox.clone(),
        transport.write,
        framing,
        settings.delivery,
    ));
    let link = Arc::new(ConnectionLink {
        server: server.clone(),
        outbox: outbox.clone(),
        feeds: Arc::default(),
        pulse: inbound.pulse(),
        pingable: silence.is_some(),
        gone: gone.clone(),
        replaced: CancellationToken::new(),
        given_up: Arc::default(),
        probing: Arc::default(),
        unread: Arc::default(),
    });
    let was_replaced = link.replaced.clone();
    let given_up = Arc::clone(&link.given_up);
    let mut dispatch = Dispatch::new(link, framing, transport.peer);

    let mut input_ended = false;
    let reason = {
        let mut ending = pin!(server.ending().cancelled());
        let mut lost = pin!(gone.cancelled());
        let mut replaced = pin!(was_replaced.cancelled());
        loop {
            let read = async {
                // Who doesn't read its answers is silent too.
                match silence {
                    Some(allowed) => tokio::time::timeout(allowed, outbox.listening())
                        .await
                        .map_err(|_| InboundError::Silent(allowed))?,
                    None => outbox.listening().await,
                }
                inbound.next().await
            };
            let received = tokio::select! {
                biased;
                () = &mut ending => break CloseReason::GoingAway,
                () = &mut lost => break CloseReason::Normal,
                // Who was given up and is there after all may come back.
                () = &mut replaced => break match given_up.load(Ordering::Acquire) {
                    true => CloseReason::Normal,
                    false => CloseReason::TakenOver,
                },
                received = read => received,
            };
            match received {
                Ok(Some(Received::Message(message))) => dispatch.message(&message).await,
                Ok(Some(Received::TooLong)) => dispatch.skipped(&Malformed::too_large()),
                Ok(Some(Received::NoMemory)) => dispatch.skipped(&Malformed::no_memory()),
                Ok(Some(Received::Ping(payload))) => outbox.pong(payload),
                Ok(Some(Received::Pong)) => {}
                Ok(None) => {
                    input_ended = true;
                    break CloseReason::Normal;
                }
                Ok(Some(Received::Close(_))) => break CloseReason::Normal,
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

    // Who has ended its input, as a pipe does, still wants to hear what became
    // of what it asked.
    if input_ended && framing == outpost_rpc::Framing::Lines {
        let answered = dispatch.all_answered();
        let _ = tokio::time::timeout(settings.last_answers_within, answered).await;
    }
    if was_replaced.is_cancelled() {
        let answered = dispatch.asides_answered();
        let _ = tokio::time::timeout(settings.delivery.close_within, answered).await;
    }
    outbox.close(reason);
    dispatch.end();
    // The farewell has its time; a peer that doesn't read misses it.
    let farewell = tokio::time::timeout(settings.delivery.close_within * 2, &mut writer).await;
    if farewell.is_err() {
        writer.abort();
    }
    match reason {
        CloseReason::TakenOver => Parting::Replaced,
        _ => Parting::Over,
    }
}

/// However the task ends, even by a panic, nothing is sent afterwards and the
/// socket is closed.
struct EndOnDrop(Outbox);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
