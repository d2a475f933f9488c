//! From a message to whoever answers it, in the order of the wire.

use std::sync::Arc;

use outpost_engine::{Epoch, Seq};
use outpost_protocol::{
    Family, INITIALIZED, Incoming, InitializeParams, Lane, Malformed, Method, PROCESS_ACK,
    ReadParams, RequestId, ResizeParams, RpcError, SignalParams, StartParams, TerminateParams,
    WriteParams, encode_error, family_of_name, parse_params,
};
use outpost_rpc::{Admission, Answer, Framing, Lanes, Outbox};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::{Caller, ConnectionLink, Handshake, Reply};
use crate::{
    Peer, Server,
    faces::{config, environment, exec, initialize, session},
};

/// How much of a parser's complaint is passed on.
const MAX_WORDS: usize = 300;

/// The dispatcher of one connection; owned by the task that reads it.
pub(super) struct Dispatch {
    server: Server,
    outbox: Outbox,
    link: Arc<ConnectionLink>,
    framing: Framing,
    peer: Peer,
    handshake: Handshake,
    caller: Option<Caller>,
    /// Which attachment of the session this connection is.
    epoch: Option<Epoch>,
    /// Requests that wait beside everything else.
    asides: TaskTracker,
    admission: Admission,
    /// Requests about a process, in order.
    lanes: Lanes<String>,
    /// Control of a process, in order, past whatever waits in its lane.
    control: Lanes<String>,
}

impl Dispatch {
    pub(super) fn new(link: Arc<ConnectionLink>, framing: Framing, peer: Peer) -> Self {
        let server = link.server.clone();
        let outbox = link.outbox.clone();
        let settings = server.settings();
        Dispatch {
            admission: Admission::new(settings.max_in_flight, settings.in_flight_bytes),
            // What was received takes effect even if the connection dies, so
            // the lanes belong to the server.
            lanes: Lanes::new(server.tasks().clone()),
            control: Lanes::new(server.tasks().clone()),
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

    /// A message came that was over the limit, and was skipped.
    pub(super) fn too_long(&self) {
        self.malformed(&Malformed::too_large());
    }

    /// The connection is gone: the session stays behind.
    pub(super) fn end(&mut self) {
        self.link.gone.cancel();
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
            (PROCESS_ACK, Handshake::Ready) => match (parse_params(params), &self.caller) {
                (Ok(params), Some(caller)) => exec::acknowledge(caller, &params),
                (Err(error), _) => {
                    let words = shortened(&error.to_string());
                    self.refuse(format!("invalid params of {PROCESS_ACK}: {words}"));
                }
                (Ok(_), None) => {}
            },
            _ => {
                let method = shortened(method);
                self.refuse(format!("unexpected notification method: {method}"));
            }
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
        match method.lane() {
            Lane::Handshake => self.initialize(control, params),
            Lane::Control => self.control(method, control, params).await,
            Lane::Process | Lane::Free => match self.admission.admit(bytes) {
                None => control.send::<()>(Err(RpcError::overloaded())),
                Some(ticket) => {
                    let reply = Reply::new(self.outbox.clone(), id, Some(ticket));
                    self.ordinary(method, reply, params).await;
                }
            },
        }
    }

    fn initialize(&mut self, reply: Reply, params: Option<&RawValue>) {
        let Some((params, reply)) = parsed::<InitializeParams>(params, reply) else {
            return;
        };
        if let Err(refusal) = self
            .handshake
            .admits_initialize(params.client_info.is_some())
        {
            return reply.send::<()>(Err(refusal));
        }
        let mut opened = match initialize::initialize(&self.server, &params, &self.link) {
            Err(refusal) => return reply.send::<()>(Err(refusal)),
            Ok(opened) => opened,
        };
        // True only for what works here.
        opened.result.capabilities.session_list = self.peer == Peer::Owner;
        self.handshake = Handshake::Answered;
        self.epoch = Some(opened.epoch);
        self.caller = Some(Caller {
            server: self.server.clone(),
            outbox: self.outbox.clone(),
            session: opened.session.clone(),
            running: Arc::new(Semaphore::new(self.server.settings().concurrent_requests)),
            gone: self.link.gone.clone(),
            replaced: self.link.replaced.clone(),
            asides: self.asides.clone(),
            peer: self.peer,
        });
        reply.send(Ok(opened.result));
        // What a resumed session has goes on from where its client was.
        for process in opened.session.processes() {
            let cursor = params.resume_from.get(process.id()).map(|seq| Seq(*seq));
            let feeds = &self.link.feeds;
            feeds.open(
                &self.outbox,
                &opened.session,
                opened.epoch,
                &process,
                cursor,
            );
        }
    }

    /// What waits behind nothing. Signals and sizes for a process that is just
    /// starting are for the process, so they wait for that, and for that alone.
    async fn control(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method {
            Method::EnvironmentInfo => reply.send(Ok(environment::info(self.server.host()))),
            Method::EnvironmentStatus => reply.send(Ok(environment::status())),
            Method::ProcessTerminate => {
                if let Some((caller, params, reply)) = self.called::<TerminateParams>(params, reply)
                {
                    reply.send(exec::terminate(&caller, &params));
                }
            }
            Method::ProcessSignal => {
                if let Some((caller, params, reply)) = self.called::<SignalParams>(params, reply)
                    && let Some(reply) = self.may_wait(&caller, &params.process_id, reply)
                {
                    let key = params.process_id.clone();
                    let waits = caller.session.is_starting(&key);
                    let job = exec::signal(caller, params, reply);
                    self.run_control(key, waits, job).await;
                }
            }
            Method::ProcessResize => {
                if let Some((caller, params, reply)) = self.called::<ResizeParams>(params, reply)
                    && let Some(reply) = self.may_wait(&caller, &params.process_id, reply)
                {
                    let key = params.process_id.clone();
                    let waits = caller.session.is_starting(&key);
                    let job = exec::resize(caller, params, reply);
                    self.run_control(key, waits, job).await;
                }
            }
            _ => reply.send::<()>(Err(RpcError::method_not_found(method.name()))),
        }
    }

    /// Runs control of a process past whatever waits in its lane. What has to
    /// wait for a start is still followed by what was sent after it.
    async fn run_control(
        &self,
        key: String,
        waits: bool,
        job: impl Future<Output = ()> + Send + 'static,
    ) {
        if !waits {
            return self.control.run(key, job).await;
        }
        let (done, taken_effect) = oneshot::channel::<()>();
        let job = async move {
            job.await;
            drop(done);
        };
        self.control.run(key.clone(), job).await;
        let behind = async move {
            // It is only ever dropped.
            let _ = taken_effect.await;
        };
        self.lanes.run(key, behind).await;
    }

    /// Control that has to wait for a start counts like any other request, or
    /// there would be no end of it.
    fn may_wait(&self, caller: &Caller, id: &str, reply: Reply) -> Option<Reply> {
        if !caller.session.is_starting(id) {
            return Some(reply);
        }
        match self.admission.admit(0) {
            Some(ticket) => Some(reply.counted(ticket)),
            None => {
                reply.send::<()>(Err(RpcError::overloaded()));
                None
            }
        }
    }

    async fn ordinary(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method {
            Method::ProcessStart => {
                if let Some((caller, params, reply)) = self.called::<StartParams>(params, reply) {
                    let key = params.process_id.clone();
                    self.lanes
                        .run(key, exec::start(caller, params, reply))
                        .await;
                }
            }
            Method::ProcessRead => {
                if let Some((caller, params, reply)) = self.called::<ReadParams>(params, reply) {
                    let key = params.process_id.clone();
                    self.lanes.run(key, exec::read(caller, params, reply)).await;
                }
            }
            Method::ProcessWrite => {
                if let Some((caller, params, reply)) = self.called::<WriteParams>(params, reply) {
                    let key = params.process_id.clone();
                    self.lanes
                        .run(key, exec::write(caller, params, reply))
                        .await;
                }
            }
            Method::ProcessList => {
                if let Some(caller) = &self.caller {
                    reply.send(Ok(exec::list(&caller.session)));
                }
            }
            Method::SessionList => {
                if let Some(caller) = &self.caller {
                    reply.send(session::list(caller));
                }
            }
            Method::ConfigRead => reply.send(config::read(self.server.host(), params)),
            Method::SessionClose => {
                if let Some(caller) = self.caller.clone() {
                    self.server.tasks().spawn(session::close(caller, reply));
                }
            }
            _ => reply.send::<()>(Err(RpcError::method_not_found(method.name()))),
        }
    }

    /// The params and who sent them; what can't be parsed is answered here.
    fn called<'a, T: Deserialize<'a>>(
        &self,
        params: Option<&'a RawValue>,
        reply: Reply,
    ) -> Option<(Caller, T, Reply)> {
        let (params, reply) = parsed(params, reply)?;
        // The handshake has let the request through, so there is a caller.
        let caller = self.caller.clone()?;
        Some((caller, params, reply))
    }
}

/// However the connection's task ends, even by a panic, the session is let go.
impl Drop for Dispatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// What was sent may be megabytes long; who is told about it needs less.
fn shortened(words: &str) -> String {
    words.chars().take(MAX_WORDS).collect()
}

fn parsed<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
    reply: Reply,
) -> Option<(T, Reply)> {
    match parse_params(params) {
        Ok(params) => Some((params, reply)),
        Err(error) => {
            let words = shortened(&error.to_string());
            let refusal = RpcError::invalid_params(format!("invalid params: {words}"));
            reply.send::<()>(Err(refusal));
            None
        }
    }
}
