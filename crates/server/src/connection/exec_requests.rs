//! Dispatch of `process/*`, `session/*` and `environment/*`.

use outpost_protocol::{
    Empty, Method, ReadParams, ResizeParams, RpcError, SessionCloseParams, SignalParams,
    StartParams, TerminateParams, WriteParams,
};
use serde_json::value::RawValue;

use super::{
    Reply,
    dispatch::Dispatch,
    params::{lane, parsed},
};
use crate::dialects::{environment, exec, session};

impl Dispatch {
    /// Serves a request of the exec dialect. Signals and resizes wait for a start of their
    /// process in flight, and for nothing else.
    pub(super) async fn serve_exec(&self, method: Method, reply: Reply, params: Option<&RawValue>) {
        match method {
            Method::EnvironmentInfo => {
                if let Some((Empty {}, reply)) = parsed(params, reply) {
                    reply.send(Ok(environment::info(self.server.host())));
                }
            }
            Method::EnvironmentStatus => {
                if let Some((Empty {}, reply)) = parsed(params, reply) {
                    reply.send(Ok(environment::status()));
                }
            }
            Method::ProcessTerminate => {
                if let Some((caller, params, reply)) =
                    self.parse_cross_session_call::<TerminateParams>(params, reply)
                {
                    reply.send(exec::terminate(&caller, &params));
                }
            }
            Method::ProcessSignal => {
                if let Some((caller, params, reply)) =
                    self.parse_cross_session_call::<SignalParams>(params, reply)
                    && let Some(reply) =
                        self.admit_control(&caller.session, &params.process_id, reply)
                {
                    let key = lane(&params.process_id, &params);
                    let waits = caller.session.is_starting(&params.process_id);
                    let job = exec::signal(caller, params, reply);
                    self.order.run_control(key, waits, job).await;
                }
            }
            Method::ProcessResize => {
                if let Some((caller, params, reply)) =
                    self.parse_call::<ResizeParams>(params, reply)
                    && let Some(reply) =
                        self.admit_control(&caller.session, &params.process_id, reply)
                {
                    let key = params.process_id.clone();
                    let waits = caller.session.is_starting(&key);
                    let job = exec::resize(caller, params, reply);
                    self.order.run_control(key, waits, job).await;
                }
            }
            Method::ProcessStart => {
                if let Some((caller, params, reply)) = self.parse_call::<StartParams>(params, reply)
                {
                    let key = params.process_id.clone();
                    let job = exec::start(caller, params, reply);
                    self.order.run_start(key, job).await;
                }
            }
            Method::ProcessRead => {
                if let Some((caller, params, reply)) =
                    self.parse_cross_session_call::<ReadParams>(params, reply)
                {
                    let key = lane(&params.process_id, &params);
                    // A read that waits for a start in its lane counts as a long poll too,
                    // so it is answered before a takeover closes the connection.
                    let pending = caller.long_polls.token();
                    let job = async move {
                        exec::read(caller, params, reply).await;
                        drop(pending);
                    };
                    self.order.run_read(key, job).await;
                }
            }
            Method::ProcessWrite => {
                if let Some((caller, params, reply)) = self.parse_call::<WriteParams>(params, reply)
                {
                    let key = params.process_id.clone();
                    let job = exec::write(caller, params, reply);
                    self.order.run(key, job).await;
                }
            }
            Method::ProcessList => {
                if let Some((caller, Empty {}, reply)) = self.parse_call(params, reply) {
                    reply.send(Ok(exec::list(&caller.session)));
                }
            }
            Method::SessionList => {
                if let Some((caller, Empty {}, reply)) = self.parse_call(params, reply) {
                    reply.send(session::list(&caller));
                }
            }
            Method::SessionClose => {
                if let Some((caller, _, reply)) =
                    self.parse_cross_session_call::<SessionCloseParams>(params, reply)
                {
                    self.server.tasks().spawn(session::close(caller, reply));
                }
            }
            _ => reply.send::<()>(Err(RpcError::method_not_found(method.name()))),
        }
    }
}
