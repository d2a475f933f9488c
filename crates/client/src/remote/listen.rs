//! The task of a connection: it reads, from the first byte to the last.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use outpost_protocol::{
    FromServer, MAX_MESSAGE_BYTES, NoMemory, RequestId, RpcError, encode_error,
};
use outpost_rpc::{Answer, Framing, Inbound, InboundError, Received, outbox};
use tokio::{process::Child, task::JoinSet};

use super::{
    Transport,
    core::Core,
    line::{Call, Line, Only, Unanswered},
    recovery::Loss,
};

/// The close code of a server whose session somebody else has taken.
const TAKEN_OVER: u16 = 4001;

/// How complaints begin that are about something other than a call.
const UNEXPECTED: &str = "unexpected ";

/// As much of a message as it takes to know whom it was for.
#[derive(serde::Deserialize)]
struct Gist {
    id: Option<RequestId>,
    method: Option<String>,
}

/// Serves a connection. It belongs to the core, whose end ends it.
pub(super) fn attend(core: &Arc<Core>, line: &Arc<Line>, transport: Transport) {
    let Transport {
        read,
        write,
        framing,
        early,
        child,
    } = transport;
    let limits = &core.options.limits;
    let silence = matches!(framing, Framing::WebSocket(_)).then_some(limits.silence);
    let mut inbound = Inbound::new(read, framing, MAX_MESSAGE_BYTES, silence);
    inbound.already_received(&early);
    let delivery = outbox::Delivery {
        close_within: limits.close_within,
        ..outbox::Delivery::default()
    };
    let outbox = line.outbox.clone();
    let mut writer = JoinSet::new();
    writer.spawn(
        core.tasks
            .track_future(outbox::deliver(outbox, write, framing, delivery)),
    );
    let attending = Attending {
        core: Arc::clone(core),
        line: Arc::clone(line),
        inbound,
        writer,
        child,
    };
    core.tasks.spawn(attending.run());
}

struct Attending {
    core: Arc<Core>,
    line: Arc<Line>,
    inbound: Inbound,
    /// The one task that writes; empty once it has ended and somebody has seen it.
    writer: JoinSet<()>,
    /// The server, if it was launched for this connection.
    child: Option<Child>,
}

impl Attending {
    async fn run(mut self) {
        let ending = self.core.ending.clone();
        let loss = tokio::select! {
            loss = self.listen() => loss,
            () = ending.cancelled() => {
                self.line.close();
                // A peer that doesn't read misses the farewell.
                let farewell = self.core.options.limits.close_within * 2;
                let _ = tokio::time::timeout(farewell, self.writer.join_next()).await;
                for_good("the place was closed")
            }
        };
        self.writer.abort_all();
        let unknown = self.line.lose(loss);
        self.core.add_strays(unknown);
        self.line.announce_loss();
        if let Some(child) = self.child.take() {
            // Its streams have to end first, which are in these two.
            while self.writer.join_next().await.is_some() {}
            drop(self.inbound);
            see_off(child, self.core.options.limits.launched_ends_within).await;
        }
    }

    async fn listen(&mut self) -> Loss {
        loop {
            let received = tokio::select! {
                biased;
                () = self.line.gone.cancelled() => return passing("it can't be written to"),
                received = self.inbound.next() => received,
            };
            match received {
                Ok(Some(Received::Message(message))) => {
                    let answer = match self.message(&message) {
                        Ok(answer) => answer,
                        Err(loss) => return loss,
                    };
                    if let Some(answer) = answer {
                        // Who asks and doesn't read isn't listened to either.
                        let line = &self.line;
                        tokio::select! {
                            () = line.outbox.listening() => line.outbox.answer(answer),
                            () = line.gone.cancelled() => {}
                        }
                    }
                }
                Ok(Some(Received::Ping(payload))) => self.line.outbox.pong(payload),
                Ok(Some(Received::Pong)) => {}
                Ok(Some(Received::TooLong)) => {
                    return passing("a message was larger than a message may be");
                }
                Ok(Some(Received::NoMemory)) => {
                    return passing(format!("failed to hold a message: {NoMemory}"));
                }
                Ok(Some(Received::Close(Some(TAKEN_OVER)))) => {
                    self.core.taken_over.store(true, Ordering::Release);
                    return for_good("the session was taken over by another connection");
                }
                Ok(Some(Received::Close(code))) => {
                    let code = code.map_or_else(String::new, |code| format!(" with code {code}"));
                    return passing(format!("the server closed the connection{code}"));
                }
                Ok(None) => return passing("the connection ended"),
                Err(InboundError::Io(error)) => return passing(error.to_string()),
                Err(error) => return passing(error.to_string()),
            }
        }
    }

    /// Deals with a message; gives the answer if the server has asked something.
    /// A message after which somebody would wait in vain costs the connection.
    fn message(&self, message: &Bytes) -> Result<Option<Answer>, Loss> {
        match FromServer::parse(message) {
            Ok(FromServer::Output(output)) => self.core.output(&self.line, output),
            Ok(FromServer::Notification { method, params }) => {
                self.core.notification(&self.line, &method, params);
            }
            Ok(FromServer::Response { id, result }) => {
                self.answer(&id, Ok(message.slice_ref(result.get().as_bytes())));
            }
            Ok(FromServer::Error {
                id: None | Some(RequestId::UNATTRIBUTED),
                error,
            }) => self.complaint(error)?,
            Ok(FromServer::Error {
                id: Some(id),
                error,
            }) => self.answer(&id, Err(error)),
            Ok(FromServer::Request { id, method }) => {
                let mut answer = Vec::new();
                encode_error(&mut answer, &id, &RpcError::method_not_found(&method));
                return Ok(Some(Answer::new(answer)));
            }
            Err(error) => self.nonsense(message, error)?,
        }
        Ok(None)
    }

    /// The server didn't understand something, and can't say what it was. If
    /// only one call waits, it was that.
    fn complaint(&self, error: RpcError) -> Result<(), Loss> {
        if error.message.starts_with(UNEXPECTED) {
            tracing::debug!(%error, "the server complains about something that was no call");
            return Ok(());
        }
        match self.line.only_call() {
            Only::Nobody => tracing::warn!(%error, "the server complains"),
            Only::One(id) => self.answer(&RequestId::Integer(id), Err(error)),
            Only::Many => {
                return Err(passing(format!(
                    "the server did not understand one of several requests: {error}"
                )));
            }
        }
        Ok(())
    }

    /// What can't be understood may be what somebody waits for.
    fn nonsense(&self, message: &Bytes, error: serde_json::Error) -> Result<(), Loss> {
        match serde_json::from_slice::<Gist>(message) {
            // Events have numbers, and a missing one is noticed and read.
            Ok(Gist {
                method: Some(method),
                ..
            }) => tracing::warn!(%error, method, "a notification makes no sense"),
            Ok(Gist {
                id: Some(RequestId::Integer(id)),
                ..
            }) => match self.line.answered(id) {
                Some(call) => self.answers(call, Err(Unanswered::Nonsense(error))),
                None => tracing::warn!(%error, "an answer to nothing makes no sense"),
            },
            _ if self.line.only_call() == Only::Nobody => {
                tracing::warn!(%error, "a message of the server makes no sense");
            }
            _ => return Err(passing(format!("the server sent nonsense: {error}"))),
        }
        Ok(())
    }

    fn answer(&self, id: &RequestId, answer: Result<Bytes, RpcError>) {
        let RequestId::Integer(id) = id else {
            return tracing::debug!("an answer to nothing that was asked");
        };
        match self.line.answered(*id) {
            Some(call) => self.answers(call, answer.map_err(Unanswered::Refused)),
            None => tracing::debug!("an answer to nothing that was asked"),
        }
    }

    fn answers(&self, call: Call, answer: Result<Bytes, Unanswered>) {
        match call {
            Call::Reply { reply, starts } => {
                let refused = matches!(answer, Err(Unanswered::Refused(_)));
                // Who has stopped waiting doesn't want it.
                if let (Err(_), Some(starting)) = (reply.send(answer), starts) {
                    self.core.started_for_nobody(&starting, refused);
                }
            }
            Call::Closes => {}
            Call::Settles(process) => self.core.strays().settled(&process),
        }
    }
}

/// A launched server ends with its input, and is made to if it doesn't.
async fn see_off(mut child: Child, within: Duration) {
    if tokio::time::timeout(within, child.wait()).await.is_err() {
        tracing::warn!("a launched server did not end with its input, and is killed");
        let _ = child.kill().await;
    }
}

fn passing(reason: impl Into<String>) -> Loss {
    Loss {
        reason: reason.into(),
        for_good: false,
    }
}

fn for_good(reason: &str) -> Loss {
    Loss {
        reason: reason.to_owned(),
        for_good: true,
    }
}
