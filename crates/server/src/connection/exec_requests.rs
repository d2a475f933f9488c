//! Requests about the session, its processes, and where they run.

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
use crate::faces::{environment, exec, session};

impl Dispatch {
    /// Signals and sizes for a process that is just starting are for the
    /// process, so they wait for that, and for that alone.
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
                    self.reaching::<TerminateParams>(params, reply)
                {
                    reply.send(exec::terminate(&caller, &params));
                }
            }
            Method::ProcessSignal => {
                if let Some((caller, params, reply)) = self.reaching::<SignalParams>(params, reply)
                    && let Some(reply) = self.may_wait(&caller.session, &params.process_id, reply)
                {
                    let key = lane(&params.process_id, &params);
                    let waits = caller.session.is_starting(&params.process_id);
                    let job = exec::signal(caller, params, reply);
                    self.order.run_control(key, waits, job).await;
                }
            }
            Method::ProcessResize => {
                if let Some((caller, params, reply)) = self.called::<ResizeParams>(params, reply)
                    && let Some(reply) = self.may_wait(&caller.session, &params.process_id, reply)
                {
                    let key = params.process_id.clone();
                    let waits = caller.session.is_starting(&key);
                    let job = exec::resize(caller, params, reply);
                    self.order.run_control(key, waits, job).await;
                }
            }
            Method::ProcessStart => {
                if let Some((caller, params, reply)) = self.called::<StartParams>(params, reply) {
                    let key = params.process_id.clone();
                    let job = exec::start(caller, params, reply);
                    self.order.run_start(key, job).await;
                }
            }
            Method::ProcessRead => {
                if let Some((caller, params, reply)) = self.reaching::<ReadParams>(params, reply) {
                    let key = lane(&params.process_id, &params);
                    // One that waits for a start is owed its answer like those
                    // that wait for news.
                    let aside = caller.asides.token();
                    let job = async move {
                        exec::read(caller, params, reply).await;
                        drop(aside);
                    };
                    self.order.run_read(key, job).await;
                }
            }
            Method::ProcessWrite => {
                if let Some((caller, params, reply)) = self.called::<WriteParams>(params, reply) {
                    let key = params.process_id.clone();
                    let job = exec::write(caller, params, reply);
                    self.order.run(key, job).await;
                }
            }
            Method::ProcessList => {
                if let Some((caller, Empty {}, reply)) = self.called(params, reply) {
                    reply.send(Ok(exec::list(&caller.session)));
                }
            }
            Method::SessionList => {
                if let Some((caller, Empty {}, reply)) = self.called(params, reply) {
                    reply.send(session::list(&caller));
                }
            }
            Method::SessionClose => {
                if let Some((caller, _, reply)) = self.reaching::<SessionCloseParams>(params, reply)
                {
                    self.server.tasks().spawn(session::close(caller, reply));
                }
            }
            _ => reply.send::<()>(Err(RpcError::method_not_found(method.name()))),
        }
    }
}
