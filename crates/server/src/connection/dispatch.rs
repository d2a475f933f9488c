//! From a message to whoever answers it, in the order of the wire.

use std::sync::{Arc, atomic::Ordering};

use outpost_engine::{Epoch, Seq, Session};
use outpost_protocol::{
    Family, HTTP_ACK, HTTP_CANCEL, INITIALIZED, Incoming, InitializeParams, Lane, Malformed,
    Method, NoMemory, PROCESS_ACK, RequestId, RpcError, encode_error, family_of_name,
    has_client_info, parse_params,
};
use outpost_rpc::{Admission, Answer, Framing, Outbox};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::{
    Caller, ConnectionLink, Handshake, Order, Reply,
    app_requests::AppSide,
    params::{Reaching, parsed, reached, shortened},
    reply::no_memory,
};
use crate::{
    Peer, Server,
    faces::{
        exec,
        fs::Desk,
        http::{self, Exchanges},
        initialize,
    },
};

/// Requests beyond this are looked at more closely before anything is built
/// from them.
const LARGE_BYTES: usize = 64 * 1024;
/// How much a request may become: the values it holds, and what a program is
/// handed of them.
const UNFOLDED: usize = 2;

/// The dispatcher of one connection; owned by the task that reads it.
pub(super) struct Dispatch {
    pub(super) server: Server,
    outbox: Outbox,
    pub(super) link: Arc<ConnectionLink>,
    framing: Framing,
    peer: Peer,
    handshake: Handshake,
    pub(super) caller: Option<Caller>,
    /// Which attachment of the session this connection is.
    epoch: Option<Epoch>,
    /// Requests that wait beside everything else.
    asides: TaskTracker,
    admission: Admission,
    /// Requests about the session's processes.
    pub(super) order: Order,
    /// What it has of the faces whose processes end with it.
    pub(super) app: AppSide,
    /// What it has of the files.
    pub(super) desk: Desk,
}

impl Dispatch {
    pub(super) fn new(link: Arc<ConnectionLink>, framing: Framing, peer: Peer) -> Self {
        let server = link.server.clone();
        let outbox = link.outbox.clone();
        let settings = server.settings();
        Dispatch {
            admission: Admission::new(
                settings.max_in_flight,
                settings.in_flight_bytes,
                settings.room_within,
            ),
            order: Order::new(server.tasks()),
            app: AppSide::default(),
            desk: Desk::new(&server, &outbox, &link.gone),
            server,
            outbox,
            link,
            framing,
            peer,
            handshake: Handshake::default(),
            caller: None,
            epoch: None,
            asides: TaskTracker::new(),
        }
    }

    /// A message came.
    pub(super) async fn message(&mut self, message: &[u8]) {
        match Incoming::parse(message) {
            Err(malformed) => self.malformed(&malformed),
            Ok(Incoming::Request {
                id,
                method,
                params,
                trace,
            }) => {
                let parent = trace.and_then(|trace| trace.traceparent);
                let span = tracing::debug_span!("request", method = &*method, parent);
                self.request(id, &method, params, message.len())
                    .instrument(span)
                    .await;
            }
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params),
            // Two peers that answer each other's complaints would never stop.
            Ok(Incoming::Error {
                id: None | Some(RequestId::UNATTRIBUTED),
            }) => {
                tracing::debug!("the client complains about something it got");
            }
            Ok(Incoming::Response { id } | Incoming::Error { id: Some(id) }) => {
                let id = serde_json::to_string(&id).unwrap_or_default();
                self.refuse(format!("unexpected response to request id {id}"));
            }
        }
    }

    /// A message came that was skipped.
    pub(super) fn skipped(&self, why: &Malformed) {
        self.malformed(why);
    }

    /// The connection is gone: the session stays behind, and what belongs to
    /// the connection goes with it.
    pub(super) fn end(&mut self) {
        self.link.gone.cancel();
        self.app.end();
        self.desk.end();
        if let (Some(caller), Some(epoch)) = (self.caller.take(), self.epoch) {
            self.server.engine().detach(&caller.session, epoch);
        }
    }

    /// Waits until every request has been answered.
    pub(super) async fn all_answered(&self) {
        self.admission.idle().await;
    }

    /// Waits until every request that waited aside has been answered.
    pub(super) async fn asides_answered(&self) {
        self.asides.close();
        self.asides.wait().await;
    }

    fn malformed(&self, malformed: &Malformed) {
        let prefix = self.framing.malformed_prefix();
        self.refuse(format!("{prefix}: {malformed}"));
    }

    /// Answers something that was no request.
    fn refuse(&self, words: String) {
        let mut message = Vec::new();
        encode_error(
            &mut message,
            &RequestId::UNATTRIBUTED,
            &RpcError::invalid_request(words),
        );
        self.outbox.answer(Answer::new(message));
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        match (method, self.handshake) {
            (INITIALIZED, Handshake::Answered | Handshake::Ready) => {
                self.handshake = Handshake::Ready;
            }
            (PROCESS_ACK, Handshake::Ready) => self.told(PROCESS_ACK, params, exec::acknowledge),
            (HTTP_ACK, Handshake::Ready) => self.told(HTTP_ACK, params, http::acknowledge),
            (HTTP_CANCEL, Handshake::Ready) => self.told(HTTP_CANCEL, params, http::cancel),
            _ => {
                let method = shortened(method);
                self.refuse(format!("unexpected notification method: {method}"));
            }
        }
    }

    /// The client says something that has no answer, unless it makes no sense.
    fn told<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Option<&RawValue>,
        heed: fn(&Caller, &T),
    ) {
        match (parse_params(params), &self.caller) {
            (Ok(params), Some(caller)) => heed(caller, &params),
            (Err(error), _) => {
                let words = shortened(&error.to_string());
                self.refuse(format!("invalid params of {method}: {words}"));
            }
            (Ok(_), None) => {}
        }
    }

    async fn request(
        &mut self,
        id: RequestId,
        name: &str,
        params: Option<&RawValue>,
        bytes: usize,
    ) {
        let control = Reply::new(self.outbox.clone(), id.clone(), None);
        let family = family_of_name(name);
        if let Some(family) = family.filter(|family| *family != Family::Handshake)
            && let Err(refusal) = self.handshake.admits(family)
        {
            return control.send::<()>(Err(refusal));
        }
        let Some(method) = Method::from_name(name) else {
            return control.send::<()>(Err(RpcError::method_not_found(&shortened(name))));
        };
        if bytes > LARGE_BYTES && NoMemory::unless_room_for(bytes * UNFOLDED).is_err() {
            return control.send::<()>(Err(no_memory("request")));
        }
        match method.lane() {
            Lane::Handshake => self.initialize(control, params),
            Lane::Control => self.serve(method, control, params).await,
            Lane::Process | Lane::Free => {
                // It may wait for room, and nobody reads the connection meanwhile.
                self.link.unread.store(true, Ordering::Release);
                let admitted = tokio::select! {
                    biased;
                    admitted = self.admission.admit(bytes) => Some(admitted),
                    () = self.given_up() => None,
                };
                self.link.unread.store(false, Ordering::Release);
                let Some(admitted) = admitted else { return };
                match admitted {
                    None => control.send::<()>(Err(RpcError::overloaded())),
                    Some(ticket) => {
                        let reply = Reply::new(self.outbox.clone(), id, Some(ticket));
                        self.serve(method, reply, params).await;
                    }
                }
            }
        }
    }

    /// Waits until the connection has to end, for whatever reason but its input.
    async fn given_up(&self) {
        tokio::select! {
            () = self.link.gone.cancelled() => {}
            () = self.link.replaced.cancelled() => {}
            () = self.server.ending().cancelled() => {}
        }
    }

    async fn serve(&mut self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method.family() {
            Family::App => self.serve_app(method, reply, params).await,
            Family::Filesystem => self.serve_fs(method, reply, params).await,
            Family::Http => self.serve_http(reply, params),
            _ => self.serve_exec(method, reply, params).await,
        }
    }

    fn serve_http(&self, reply: Reply, params: Option<&RawValue>) {
        if let Some((caller, params, reply)) = self.called(params, reply) {
            http::request(caller, params, reply);
        }
    }

    fn initialize(&mut self, reply: Reply, params: Option<&RawValue>) {
        // Once is once, whatever the second one says.
        if let Err(refusal) = self.handshake.admits_initialize(|| has_client_info(params)) {
            return reply.send::<()>(Err(refusal));
        }
        let Some((params, reply)) = parsed::<InitializeParams>(params, reply) else {
            return;
        };
        let mut opened = match initialize::initialize(&self.server, &params, &self.link) {
            Err(refusal) => return reply.send::<()>(Err(refusal)),
            Ok(opened) => opened,
        };
        // True only for what works here.
        opened.result.capabilities.session_list = self.peer == Peer::Owner;
        self.handshake = Handshake::Answered;
        self.epoch = Some(opened.epoch);
        let capabilities = params.capabilities.unwrap_or_default();
        let concurrent_requests = self.server.settings().concurrent_requests;
        self.app.is_experimental = capabilities.experimental_api;
        self.caller = Some(Caller {
            server: self.server.clone(),
            outbox: self.outbox.clone(),
            session: opened.session.clone(),
            running: Arc::new(Semaphore::new(
                concurrent_requests.min(Semaphore::MAX_PERMITS),
            )),
            exchanges: Exchanges::new(self.server.settings().http_requests),
            gone: self.link.gone.clone(),
            replaced: self.link.replaced.clone(),
            asides: self.asides.clone(),
            peer: self.peer,
            visiting: false,
        });
        reply.send(Ok(opened.result));
        // What a resumed session has goes on from where its client was.
        for process in opened.session.processes() {
            let cursor = params.resume_from.get(process.id()).map(|seq| Seq(*seq));
            let owner = (&opened.session, opened.epoch);
            let teller = exec::EventTeller::new(&process);
            let feeds = &self.link.feeds;
            feeds.open(&self.outbox, owner, &process, cursor, teller);
        }
    }

    /// Control that has to wait for a start counts like any other request, or
    /// there would be no end of it.
    pub(super) fn may_wait(&self, session: &Session, id: &str, reply: Reply) -> Option<Reply> {
        if !session.is_starting(id) {
            return Some(reply);
        }
        match self.admission.admit_small() {
            Some(ticket) => Some(reply.counted(ticket)),
            None => {
                reply.send::<()>(Err(RpcError::overloaded()));
                None
            }
        }
    }

    /// The params and who sent them; what can't be parsed is answered here.
    pub(super) fn called<'a, T: Deserialize<'a>>(
        &self,
        params: Option<&'a RawValue>,
        reply: Reply,
    ) -> Option<(Caller, T, Reply)> {
        let (params, reply) = parsed(params, reply)?;
        // The handshake has let the request through, so there is a caller.
        let caller = self.caller.clone()?;
        Some((caller, params, reply))
    }

    /// The same, where the params may name another session than the caller's.
    pub(super) fn reaching<'a, T: Deserialize<'a> + Reaching>(
        &self,
        params: Option<&'a RawValue>,
        reply: Reply,
    ) -> Option<(Caller, T, Reply)> {
        reached(self.called(params, reply)?)
    }
}

/// However the connection's task ends, even by a panic, the session is let go.
impl Drop for Dispatch {
    fn drop(&mut self) {
        self.end();
    }
}
