//! Dispatch of the app-server methods: `process/spawn` and `command/exec` with their
//! siblings, and `config/read`.

use outpost_protocol::{
    CommandParams, CommandResizeParams, CommandTerminateParams, CommandWriteParams, KillParams,
    Lane, Method, ResizePtyParams, RpcError, SpawnParams, V0ExecParams, V0TerminateParams,
    V0WriteParams, WriteStdinParams, names_argv, parse_params,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    Reply, Scope,
    dispatch::Dispatch,
    params::truncated,
    scopes::{ProcessIdSpace, Scopes},
};
use crate::dialects::{command, config, spawn, v0};

/// The state of these dialects on one connection.
#[derive(Default)]
pub(super) struct AppState {
    /// The client has the capability `experimentalApi`.
    pub(super) is_experimental: bool,
    /// `command/exec` is the one of the v0 dialect.
    speaks_v0: bool,
    /// Number of commands without a process id so far.
    unnamed: u64,
    scopes: Scopes,
}

impl AppState {
    /// Ends all processes of the connection.
    pub(super) fn end(&mut self) {
        self.scopes.end();
    }
}

/// A request to serve.
struct Call<'a> {
    method: Method,
    params: Option<&'a RawValue>,
    reply: Reply,
}

impl Dispatch {
    pub(super) async fn serve_app(
        &mut self,
        method: Method,
        reply: Reply,
        params: Option<&RawValue>,
    ) {
        let call = Call {
            method,
            params,
            reply,
        };
        match method {
            Method::ConfigRead => {
                if let Some((params, reply)) = call.parsed() {
                    reply.send(Ok(config::read(self.server.host(), params)));
                }
            }
            Method::ProcessSpawn
            | Method::ProcessWriteStdin
            | Method::ProcessResizePty
            | Method::ProcessKill => self.serve_spawn(call).await,
            Method::CommandExec if names_argv(params) => {
                self.app.speaks_v0 = true;
                self.serve_v0(call).await;
            }
            _ if self.app.speaks_v0 => self.serve_v0(call).await,
            _ => self.serve_command(call).await,
        }
    }

    async fn serve_spawn(&mut self, call: Call<'_>) {
        if !self.app.is_experimental {
            let error = needs_experimental(call.method.name());
            return call.reject(error);
        }
        let kind = ProcessIdSpace::Spawn;
        match call.method {
            Method::ProcessSpawn => {
                let name = |params: &SpawnParams| params.process_handle.clone();
                self.run(kind, call, name, spawn::spawn).await;
            }
            Method::ProcessWriteStdin => {
                let name = |params: &WriteStdinParams| params.process_handle.clone();
                self.run(kind, call, name, spawn::write_stdin).await;
            }
            Method::ProcessResizePty => {
                let name = |params: &ResizePtyParams| params.process_handle.clone();
                self.run(kind, call, name, spawn::resize_pty).await;
            }
            Method::ProcessKill => {
                let name = |params: &KillParams| params.process_handle.clone();
                self.run(kind, call, name, spawn::kill).await;
            }
            _ => call.reject_method(),
        }
    }

    async fn serve_command(&mut self, call: Call<'_>) {
        let kind = ProcessIdSpace::Command;
        match call.method {
            Method::CommandExec => self.exec_command(call).await,
            Method::CommandExecWrite => {
                let name = |params: &CommandWriteParams| params.process_id.clone();
                self.run(kind, call, name, command::write).await;
            }
            Method::CommandExecResize => {
                let name = |params: &CommandResizeParams| params.process_id.clone();
                self.run(kind, call, name, command::resize).await;
            }
            Method::CommandExecTerminate => {
                let name = |params: &CommandTerminateParams| params.process_id.clone();
                self.run(kind, call, name, command::terminate).await;
            }
            _ => call.reject_method(),
        }
    }

    /// Serves `command/exec`. Commands without a process id have their own scope, so their
    /// generated names cannot collide with or be addressed as client ids.
    async fn exec_command(&mut self, call: Call<'_>) {
        let Some((params, reply)) = call.parsed::<CommandParams>() else {
            return;
        };
        if params.permission_profile.is_some() && !self.app.is_experimental {
            let error = needs_experimental("command/exec.permissionProfile");
            return reply.send::<()>(Err(error));
        }
        let (kind, name) = match &params.process_id {
            Some(id) => (ProcessIdSpace::Command, id.clone()),
            None => {
                self.app.unnamed += 1;
                (ProcessIdSpace::Unnamed, self.app.unnamed.to_string())
            }
        };
        if let Some((scope, reply)) = self.scope(kind, reply) {
            let job = command::exec(scope.clone(), name.clone(), params, reply);
            scope.order().run(name, job).await;
        }
    }

    async fn serve_v0(&mut self, call: Call<'_>) {
        let kind = ProcessIdSpace::V0;
        match call.method {
            Method::CommandExec => {
                let name = |params: &V0ExecParams| params.process_id.clone();
                self.run(kind, call, name, v0::exec).await;
            }
            Method::CommandExecWrite => {
                let name = |params: &V0WriteParams| params.process_id.clone();
                self.run(kind, call, name, v0::write).await;
            }
            Method::CommandExecTerminate => {
                let name = |params: &V0TerminateParams| params.process_id.clone();
                self.run(kind, call, name, v0::terminate).await;
            }
            _ => call.reject_method(),
        }
    }

    /// Runs a request in the lane of its process. Control requests wait for a start of the
    /// process in flight, and for nothing else.
    async fn run<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &mut self,
        kind: ProcessIdSpace,
        call: Call<'_>,
        name: fn(&P) -> String,
        job: fn(Scope, P, Reply) -> J,
    ) {
        let is_control = call.method.lane() == Lane::Control;
        let Some((params, reply)) = call.parsed::<P>() else {
            return;
        };
        let Some((scope, reply)) = self.scope(kind, reply) else {
            return;
        };
        let key = name(&params);
        if !is_control {
            let job = job(scope.clone(), params, reply);
            return scope.order().run(key, job).await;
        }
        if let Some(reply) = self.admit_control(scope.session(), &key, reply) {
            let waits = scope.session().is_starting(&key);
            let job = job(scope.clone(), params, reply);
            scope.order().run_control(key, waits, job).await;
        }
    }

    /// Returns the scope of a dialect. Rejects the request if the server is shutting down.
    fn scope(&mut self, kind: ProcessIdSpace, reply: Reply) -> Option<(Scope, Reply)> {
        // Always present: the handshake check passed.
        let start_permits = &self.caller.as_ref()?.start_permits;
        let Some(scope) = self.app.scopes.get_or_open(kind, &self.link, start_permits) else {
            reply.send::<()>(Err(RpcError::overloaded()));
            return None;
        };
        Some((scope, reply))
    }
}

impl Call<'_> {
    /// Parses the params. Rejects invalid ones with the app-server's error.
    fn parsed<T: DeserializeOwned>(self) -> Option<(T, Reply)> {
        match parse_params(self.params) {
            Ok(params) => Some((params, self.reply)),
            Err(error) => {
                let text = truncated(&error.to_string());
                self.reject(RpcError::invalid_request(format!(
                    "Invalid request: {text}"
                )));
                None
            }
        }
    }

    fn reject(self, error: RpcError) {
        self.reply.send::<()>(Err(error));
    }

    fn reject_method(self) {
        let error = RpcError::method_not_found(self.method.name());
        self.reject(error);
    }
}

fn needs_experimental(what: &str) -> RpcError {
    RpcError::invalid_request(format!("{what} requires experimentalApi capability"))
}
