//! Spawns the child of a start: its sandbox, its network, its permit.

use std::sync::Arc;

use outpost_netproxy::Proxy;
use outpost_process::{Child, Command};
use outpost_sandbox::{HostResources, SandboxError, Step};

use super::{Engine, start_retries::retry_transient};
use crate::{
    NetworkRequest, PeerPermit, Process, ProcessObserver, Reservation, Session, Start, StartError,
    network::ProcessNetwork,
};

/// A child that runs, with what it needs.
pub(super) struct Spawned {
    pub(super) child: Child,
    /// The host resources of a sandboxed process.
    pub(super) resources: Option<HostResources>,
    pub(super) network: Option<ProcessNetwork>,
    pub(super) permit: PeerPermit,
}

impl Engine {
    /// Spawns the child, with retries, if the limit on processes allows it.
    pub(super) async fn spawn_within_limits(
        &self,
        session: &Session,
        reservation: &Reservation,
        start: &Start,
    ) -> Result<Spawned, StartError> {
        reservation.check()?;
        self.check_limits(&start.limits).await?;
        let info_bytes = reservation.info.bytes();
        let output_share = self.shared.output_budget.share(session.peer());
        if !output_share.has_space_for(info_bytes) {
            return Err(StartError::TooMany);
        }
        let permit = self.process_permit(session.peer(), start.max_processes)?;
        let mut command = self.command(session, reservation, start).await?;
        let proxies = &self.shared.network_proxies;
        let network = start.network.as_ref();
        let network = network.map(|network| proxies.prepare(network, start.is_sandboxed()));
        let network = network.transpose()?;
        if let Some(network) = &network {
            network.set_variables(&mut command.env);
        }
        let (child, mut resources) = self.spawn(reservation, start, &command).await?;
        let listeners = resources.as_mut().map(HostResources::take_listeners);
        let listeners = listeners.unwrap_or_default();
        let network = network.map(|network| network.start(listeners, session, &start.id));
        // Dropping the child kills it.
        let network = network.transpose()?;
        Ok(Spawned {
            child,
            resources,
            network,
            permit,
        })
    }

    /// Spawns the child, with retries. If its network is managed, nothing serves it yet.
    pub(super) async fn spawn(
        &self,
        reservation: &Reservation,
        start: &Start,
        command: &Command,
    ) -> Result<(Child, Option<HostResources>), StartError> {
        let limit = self.shared.limits.sandbox_start_timeout;
        retry_transient(limit, || self.try_spawn(reservation, start, command)).await
    }

    /// Makes one attempt to spawn the child.
    async fn try_spawn(
        &self,
        reservation: &Reservation,
        start: &Start,
        command: &Command,
    ) -> Result<(Child, Option<HostResources>), StartError> {
        let spawner = &self.shared.spawner;
        let Some(mut request) = start.sandbox_request(reservation.turn_key()) else {
            // Dropping the spawn undoes it, so that a start that hangs can be cancelled.
            let child = tokio::select! {
                child = spawner.spawn(command.clone()) => child?,
                error = reservation.cancelled() => return Err(error),
            };
            return Ok((child, None));
        };
        let network = start.network.as_ref();
        request.listen = network.map_or_else(Vec::new, NetworkRequest::ports_inside);
        let limit = self.shared.limits.sandbox_start_timeout;
        let sandbox = self.sandbox()?;
        // Preparation may take long and there is nothing to undo yet, so a cancelled start doesn't
        // wait for it.
        let prepared = tokio::select! {
            prepared = sandbox.prepare_process(request, command.clone(), limit) => prepared?,
            error = reservation.cancelled() => return Err(error),
        };
        reservation.check()?;
        let cancelled = reservation.cancelled();
        match prepared.start(spawner, limit, cancelled).await {
            Ok((child, resources)) => Ok((child, Some(resources))),
            Err(StartError::Sandbox(SandboxError::Helper {
                step: Step::Listen,
                errno,
                ..
            })) => {
                let error = std::io::Error::from_raw_os_error(errno);
                Err(StartError::NetworkProxy(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Passes the decisions of a proxy to the observer and to the connection of the session, in a task that
    /// ends with the proxy.
    pub(super) fn report_decisions(
        &self,
        session: &Session,
        process: &Process,
        observer: Option<Arc<dyn ProcessObserver>>,
        network: ProcessNetwork,
    ) -> Proxy {
        let mut events = network.events;
        let (session, info) = (session.clone(), Arc::clone(&process.shared.info));
        self.shared.tasks.spawn(async move {
            while let Some(decision) = events.recv().await {
                if let Some(observer) = &observer {
                    observer.network_decided(&decision);
                }
                if let Some(link) = session.link() {
                    link.network_decided(&info.id, &decision);
                }
            }
        });
        network.proxy
    }
}
