//! Requests in the words of the app-server: the faces whose processes belong to the
//! connection, and the configuration.

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
    params::shortened,
    scopes::{Face, Scopes},
};
use crate::faces::{command, config, spawn, v0};

/// What a connection has to do with these faces.
#[derive(Default)]
pub(super) struct AppSide {
    /// Whether the client wants what may still change.
    pub(super) is_experimental: bool,
    /// Whether `command/exec` is that of the first exec protocol.
    speaks_v0: bool,
    /// How many commands had no name.
    unnamed: u64,
    scopes: Scopes,
}

impl AppSide {
    /// The connection is gone.
    pub(super) fn end(&mut self) {
        self.scopes.end();
    }
}

/// A request that is about to be served.
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
            let refusal = needs_experimental(call.method.name());
            return call.refuse(refusal);
        }
        let face = Face::Spawn;
        match call.method {
            Method::ProcessSpawn => {
                let name = |params: &SpawnParams| params.process_handle.clone();
                self.run(face, call, name, spawn::spawn).await;
            }
            Method::ProcessWriteStdin => {
                let name = |params: &WriteStdinParams| params.process_handle.clone();
                self.run(face, call, name, spawn::write_stdin).await;
            }
            Method::ProcessResizePty => {
                let name = |params: &ResizePtyParams| params.process_handle.clone();
                self.run(face, call, name, spawn::resize_pty).await;
            }
            Method::ProcessKill => {
                let name = |params: &KillParams| params.process_handle.clone();
                self.run(face, call, name, spawn::kill).await;
            }
            _ => call.refuse_method(),
        }
    }

    async fn serve_command(&mut self, call: Call<'_>) {
        let face = Face::Command;
        match call.method {
            Method::CommandExec => self.exec_command(call).await,
            Method::CommandExecWrite => {
                let name = |params: &CommandWriteParams| params.process_id.clone();
                self.run(face, call, name, command::write).await;
            }
            Method::CommandExecResize => {
                let name = |params: &CommandResizeParams| params.process_id.clone();
                self.run(face, call, name, command::resize).await;
            }
            Method::CommandExecTerminate => {
                let name = |params: &CommandTerminateParams| params.process_id.clone();
                self.run(face, call, name, command::terminate).await;
            }
            _ => call.refuse_method(),
        }
    }

    /// A command without a name is in nobody's way, and nobody can ask for it.
    async fn exec_command(&mut self, call: Call<'_>) {
        let Some((params, reply)) = call.parsed::<CommandParams>() else {
            return;
        };
        if params.permission_profile.is_some() && !self.app.is_experimental {
            let refusal = needs_experimental("command/exec.permissionProfile");
            return reply.send::<()>(Err(refusal));
        }
        let (face, name) = match &params.process_id {
            Some(id) => (Face::Command, id.clone()),
            None => {
                self.app.unnamed += 1;
                (Face::Unnamed, self.app.unnamed.to_string())
            }
        };
        if let Some((scope, reply)) = self.scope(face, reply) {
            let job = command::exec(scope.clone(), name.clone(), params, reply);
            scope.order().run(name, job).await;
        }
    }

    async fn serve_v0(&mut self, call: Call<'_>) {
        let face = Face::V0;
        match call.method {
            Method::CommandExec => {
                let name = |params: &V0ExecParams| params.process_id.clone();
                self.run(face, call, name, v0::exec).await;
            }
            Method::CommandExecWrite => {
                let name = |params: &V0WriteParams| params.process_id.clone();
                self.run(face, call, name, v0::write).await;
            }
            Method::CommandExecTerminate => {
                let name = |params: &V0TerminateParams| params.process_id.clone();
                self.run(face, call, name, v0::terminate).await;
            }
            _ => call.refuse_method(),
        }
    }

    /// Runs a request about a process in its order. Control waits for a start
    /// of its process, and for nothing else.
    async fn run<P: DeserializeOwned, J: Future<Output = ()> + Send + 'static>(
        &mut self,
        face: Face,
        call: Call<'_>,
        name: fn(&P) -> String,
        job: fn(Scope, P, Reply) -> J,
    ) {
        let is_control = call.method.lane() == Lane::Control;
        let Some((params, reply)) = call.parsed::<P>() else {
            return;
        };
        let Some((scope, reply)) = self.scope(face, reply) else {
            return;
        };
        let key = name(&params);
        if !is_control {
            let job = job(scope.clone(), params, reply);
            return scope.order().run(key, job).await;
        }
        if let Some(reply) = self.may_wait(scope.session(), &key, reply) {
            let waits = scope.session().is_starting(&key);
            let job = job(scope.clone(), params, reply);
            scope.order().run_control(key, waits, job).await;
        }
    }

    /// Where a face has its processes; a server that is ending has no place.
    fn scope(&mut self, face: Face, reply: Reply) -> Option<(Scope, Reply)> {
        // The handshake has let the request through, so there is a caller.
        let running = &self.caller.as_ref()?.running;
        let Some(scope) = self.app.scopes.of(face, &self.link, running) else {
            reply.send::<()>(Err(RpcError::overloaded()));
            return None;
        };
        Some((scope, reply))
    }
}

impl Call<'_> {
    /// The params; what can't be read is answered here, as the app-server does.
    fn parsed<T: DeserializeOwned>(self) -> Option<(T, Reply)> {
        match parse_params(self.params) {
            Ok(params) => Some((params, self.reply)),
            Err(error) => {
                let words = shortened(&error.to_string());
                self.refuse(RpcError::invalid_request(format!(
                    "Invalid request: {words}"
                )));
                None
            }
        }
    }

    fn refuse(self, refusal: RpcError) {
        self.reply.send::<()>(Err(refusal));
    }

    fn refuse_method(self) {
        let refusal = RpcError::method_not_found(self.method.name());
        self.refuse(refusal);
    }
}

fn needs_experimental(what: &str) -> RpcError {
    RpcError::invalid_request(format!("{what} requires experimentalApi capability"))
}
