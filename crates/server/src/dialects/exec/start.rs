//! `process/start`.

use outpost_engine::{Process, Reservation, Start, StartError};
use outpost_protocol::{RpcError, SandboxType, StartParams, StartResult};

use crate::{
    connection::{Caller, Reply},
    convert,
};

/// Starts a process, responds, and then starts to push its events, so that the response
/// always precedes the first event.
pub(crate) async fn start(caller: Caller, params: StartParams, reply: Reply) {
    match try_start(&caller, params).await {
        Err(error) => reply.send::<()>(Err(error)),
        Ok((process, sandbox_type)) => {
            reply.send(Ok(StartResult {
                process_id: process.id().to_owned(),
                sandbox_type,
            }));
            caller.session.hand_over(&process);
        }
    }
}

async fn try_start(
    caller: &Caller,
    params: StartParams,
) -> Result<(Process, SandboxType), RpcError> {
    let start = Start::from_params(params, &caller.server.host().environment)
        .map_err(|invalid| RpcError::invalid_params(invalid.to_string()))?;
    // Reserved before the first await, so that a later terminate finds it.
    let sandbox_type = match start.sandbox {
        Some(_) => SandboxType::LinuxSeccomp,
        None => SandboxType::None,
    };
    let reserved = caller.session.reserve(&start);
    let reservation: Reservation = reserved.map_err(|error| convert::start_error(&error))?;
    let _permit = caller.start_permits.acquire().await;
    let engine = caller.server.engine();
    let started = engine.start(&caller.session, reservation, start).await;
    let process = started.map_err(|error: StartError| convert::start_error(&error))?;
    Ok((process, sandbox_type))
}
