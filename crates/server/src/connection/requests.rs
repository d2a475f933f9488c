//! The table of methods: how each request is parsed, ordered and served.

use std::sync::Arc;

use outpost_protocol::{
    AccessScope, CommandParams, CommandResizeParams, CommandTerminateParams, CommandWriteParams,
    ConfigReadParams, ConfigReadResult, Empty, HttpRequestParams, KillParams, Lane, ListResult,
    Method, NetworkParams, ReadParams, ResizeParams, ResizePtyParams, RpcError, SessionCloseParams,
    SignalParams, SpawnParams, StartParams, StatusResult, TerminateParams, V0ExecParams,
    V0TerminateParams, V0WriteParams, WriteParams, WriteStdinParams,
};
use outpost_rpc::MemoryCharge;
use serde::{Serialize, de::DeserializeOwned};

use super::{Reply, dispatch::Dispatch, unparsed_request::Request};
use crate::{
    auth::PRIVATE_SETTINGS,
    dialects::{
        exec, http,
        per_connection::{ConnectionSession, ProcessIdSpace, command, spawn, v0},
        session,
    },
};

/// Each function serves the methods of some families. It returns `None` if the request was
/// rejected before it was served. One that was served and failed is not distinguished from one that
/// succeeded.
impl Dispatch {
    /// Serves `process/*` of the exec dialect, `session/*`, `environment/*` and `http/*`.
    pub(super) async fn serve_exec(&self, request: Request<'_>) -> Option<()> {
        let caller = self.caller()?;
        let server = &self.connection.server;
        match request.method {
            Method::EnvironmentInfo => {
                request.respond_without_params(self.connection.environment_info())
            }
            Method::EnvironmentStatus => {
                request.respond_now(|Empty {}| Ok(StatusResult::default()))
            }
            Method::ProcessList => request.respond_now(|Empty {}| {
                Ok(ListResult {
                    processes: caller.session.list(),
                })
            }),
            Method::ProcessTerminate => request.respond_now(|params: TerminateParams| {
                let caller = caller.for_session(params.session_id.as_deref())?;
                Ok(exec::terminate(&caller.session, &params))
            }),
            Method::ProcessSignal => {
                let (params, reply) = request.parse::<SignalParams>()?;
                let caller = caller.for_session(params.session_id.as_deref());
                let (caller, reply) = reply.accept(caller)?;
                let waits = caller.session.is_starting(&params.process_id);
                let reply = self.admit_control(waits, reply)?;
                let key = lane(&params.process_id, params.session_id.as_deref());
                let job = reply.send_outcome(exec::signal(caller.session, params));
                self.lanes.run_control(key, waits, Box::pin(job)).await;
                Some(())
            }
            Method::ProcessResize => {
                let (params, reply) = request.parse::<ResizeParams>()?;
                let key = params.process_id.clone();
                let waits = caller.session.is_starting(&key);
                let reply = self.admit_control(waits, reply)?;
                let job = reply.send_outcome(exec::resize(caller.session, params));
                self.lanes.run_control(key, waits, Box::pin(job)).await;
                Some(())
            }
            Method::ProcessStart => {
                let (params, reply) = request.parse::<StartParams>()?;
                let key = params.process_id.clone();
                let job = exec::start(caller, params, reply);
                self.lanes.run_start(key, Box::pin(job)).await;
                Some(())
            }
            Method::ProcessRead => {
                let (params, reply) = request.parse::<ReadParams>()?;
                let caller = caller.for_session(params.session_id.as_deref());
                let (caller, reply) = reply.accept(caller)?;
                let key = lane(&params.process_id, params.session_id.as_deref());
                // A read that waits for a start in its lane counts as a long poll too, so it
                // is answered before a takeover closes the connection.
                let pending = caller.connection.long_polls.token();
                let job = async move {
                    exec::read(caller, params, reply).await;
                    drop(pending);
                };
                self.lanes.run_read(key, Box::pin(job)).await;
                Some(())
            }
            Method::ProcessNetwork => {
                let (params, reply) = request.parse::<NetworkParams>()?;
                let caller = caller.for_session(params.session_id.as_deref());
                let (caller, reply) = reply.accept(caller)?;
                let key = lane(&params.process_id, params.session_id.as_deref());
                let job = exec::network(caller, params, reply);
                self.lanes.run_read(key, Box::pin(job)).await;
                Some(())
            }
            Method::ProcessWrite => {
                let (params, mut reply) = request.parse::<WriteParams>()?;
                let key = params.process_id.clone();
                let memory = reply.take_memory();
                let job = reply.send_outcome(exec::write(caller.session, params, memory));
                self.lanes.run(key, Box::pin(job)).await;
                Some(())
            }
            Method::SessionList => request.respond_now(|Empty {}| session::list(&self.connection)),
            Method::SessionLease => {
                request.respond_now(|params| session::set_lease(&caller, params))
            }
            Method::SessionClose => {
                let (params, reply) = request.parse::<SessionCloseParams>()?;
                let caller = caller.for_session(params.session_id.as_deref());
                let (caller, reply) = reply.accept(caller)?;
                server
                    .tasks
                    .spawn(reply.send_outcome(session::close(caller)));
                Some(())
            }
            Method::HttpRequest => {
                let (params, reply) = request.parse::<HttpRequestParams>()?;
                http::request(caller.connection, params, reply);
                Some(())
            }
            _ => request.reject_method(),
        }
    }

    /// Serves `process/spawn` and `command/exec` with their siblings, and `config/read`.
    pub(super) async fn serve_per_connection(&mut self, request: Request<'_>) -> Option<()> {
        use ProcessIdSpace::{Command, Spawn, V0};
        let method = request.method;
        let v0 = self.speaks_v0;
        match method {
            Method::ConfigRead => request.respond_now(|params: ConfigReadParams| {
                let mut result = self.connection.server.host.configuration.clone();
                result.layers = result.layers.filter(|_| params.include_layers);
                if !self.connection.principal.has(AccessScope::Admin) {
                    remove_private_settings(&mut result);
                }
                Ok(result)
            }),
            Method::ProcessSpawn => {
                let name = |params: &SpawnParams| params.process_handle.clone();
                self.run(Spawn, request, name, spawn::spawn).await
            }
            Method::ProcessWriteStdin => {
                let name = |params: &WriteStdinParams| params.process_handle.clone();
                self.run_write(Spawn, request, name, spawn::write_stdin)
                    .await
            }
            Method::ProcessResizePty => {
                let name = |params: &ResizePtyParams| params.process_handle.clone();
                self.run_and_send(Spawn, request, name, spawn::resize_pty)
                    .await
            }
            Method::ProcessKill => {
                let name = |params: &KillParams| params.process_handle.clone();
                self.run_and_send(Spawn, request, name, spawn::kill).await
            }
            Method::CommandExec if v0 => {
                let name = |params: &V0ExecParams| params.process_id.clone();
                self.run(V0, request, name, v0::exec).await
            }
            Method::CommandExecWrite if v0 => {
                let name = |params: &V0WriteParams| params.process_id.clone();
                self.run_write(V0, request, name, v0::write).await
            }
            Method::CommandExecTerminate if v0 => {
                let name = |params: &V0TerminateParams| params.process_id.clone();
                self.run_and_send(V0, request, name, v0::terminate).await
            }
            Method::CommandExec => self.exec_command(request).await,
            Method::CommandExecWrite => {
                let name = |params: &CommandWriteParams| params.process_id.clone();
                self.run_write(Command, request, name, command::write).await
            }
            Method::CommandExecResize if !v0 => {
                let name = |params: &CommandResizeParams| params.process_id.clone();
                self.run_and_send(Command, request, name, command::resize)
                    .await
            }
            Method::CommandExecTerminate => {
                let name = |params: &CommandTerminateParams| params.process_id.clone();
                self.run_and_send(Command, request, name, command::terminate)
                    .await
            }
            _ => request.reject_method(),
        }
    }

    /// Serves `command/exec`. Commands without a process id have their own session, so their
    /// generated names cannot collide with or be addressed as client ids.
    async fn exec_command(&mut self, request: Request<'_>) -> Option<()> {
        let (params, mut reply) = request.parse::<CommandParams>()?;
        if params.permission_profile.is_some() {
            let allowed = self.check_experimental("command/exec.permissionProfile");
            ((), reply) = reply.accept(allowed)?;
        }
        let (space, name) = match &params.process_id {
            Some(id) => (ProcessIdSpace::Command, id.clone()),
            None => (
                ProcessIdSpace::Unnamed,
                self.connection_sessions.generate_name(),
            ),
        };
        let (session, reply) = reply.accept(
            self.connection_sessions
                .get_or_open(space, &self.connection),
        )?;
        let job = command::exec(Arc::clone(&session), name.clone(), params, reply);
        session.lanes.run(name, Box::pin(job)).await;
        Some(())
    }

    /// Runs a request about a process of the connection, and sends its outcome.
    async fn run_and_send<P, R, J>(
        &mut self,
        space: ProcessIdSpace,
        request: Request<'_>,
        name: fn(&P) -> String,
        job: fn(Arc<ConnectionSession>, P) -> J,
    ) -> Option<()>
    where
        P: DeserializeOwned,
        R: Serialize + 'static,
        J: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        let job = |session, params, reply: Reply| reply.send_outcome(job(session, params));
        self.run(space, request, name, job).await
    }

    /// Runs a write to the stdin of a process, whose bytes keep the memory of the request.
    async fn run_write<P, R, J>(
        &mut self,
        space: ProcessIdSpace,
        request: Request<'_>,
        name: fn(&P) -> String,
        job: fn(Arc<ConnectionSession>, P, Option<MemoryCharge>) -> J,
    ) -> Option<()>
    where
        P: DeserializeOwned,
        R: Serialize + 'static,
        J: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        let job = |session, params, mut reply: Reply| {
            let memory = reply.take_memory();
            reply.send_outcome(job(session, params, memory))
        };
        self.run(space, request, name, job).await
    }

    /// Runs a request in the lane of its process. Control requests wait for a start of the
    /// process in flight, and for nothing else.
    async fn run<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &mut self,
        space: ProcessIdSpace,
        request: Request<'_>,
        name: fn(&P) -> String,
        job: impl FnOnce(Arc<ConnectionSession>, P, Reply) -> J,
    ) -> Option<()> {
        let method = request.method;
        let allowed = match space {
            ProcessIdSpace::Spawn => self.check_experimental(method.name()),
            _ => Ok(()),
        };
        let ((), reply) = request.reply.accept(allowed)?;
        let (params, reply) = Request { reply, ..request }.parse::<P>()?;
        let (session, reply) = reply.accept(
            self.connection_sessions
                .get_or_open(space, &self.connection),
        )?;
        let key = name(&params);
        if method.lane() == Lane::Control {
            let waits = session.inner.is_starting(&key);
            let reply = self.admit_control(waits, reply)?;
            let job = job(Arc::clone(&session), params, reply);
            session.lanes.run_control(key, waits, Box::pin(job)).await;
        } else {
            let job = job(Arc::clone(&session), params, reply);
            session.lanes.run(key, Box::pin(job)).await;
        }
        Some(())
    }
}

fn remove_private_settings(result: &mut ConfigReadResult) {
    let layers = result.layers.iter_mut().flatten();
    let configs = layers.map(|layer| &mut layer.config);
    for config in configs.chain([&mut result.config]) {
        config.retain(|key, _| !PRIVATE_SETTINGS.contains(&&**key));
    }
    result.origins.retain(|key, _| {
        let table = key.split('.').next().unwrap_or_default();
        !PRIVATE_SETTINGS.contains(&table)
    });
}

/// Returns the lane key of a process. Includes the session if it is not the caller's own,
/// where a process may have the same name.
fn lane(process: &str, session: Option<&str>) -> String {
    match session {
        None => process.to_owned(),
        Some(session) => format!("{session}/{process}"),
    }
}
