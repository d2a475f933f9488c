//! The proxy of one process.

use std::ffi::OsString;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;

use outpost_netproxy::{
    Activity, Decider, Decision, Limits, Listeners, Parts, Proxy, ProxyAddress, ProxyConfig,
    SystemDialer, variables,
};
use outpost_types::{NetworkDecision, NetworkTarget};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    NetworkRequest,
    request::{HTTP_PORT, SOCKS_PORT},
};
use crate::{Session, StartError};

/// The maximum number of unreported decisions of a process. Further decisions are dropped.
const MAX_EVENTS: usize = 256;

/// Descriptors of one connection: to the program and to its target.
const DESCRIPTORS: usize = 2;

/// State that the proxies of an engine share.
pub(crate) struct ProxyLimits {
    limits: Limits,
}

impl ProxyLimits {
    /// Limits all proxies to a quarter of this program's descriptors, and each to a quarter of that.
    pub(crate) fn new() -> Self {
        let nofile = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let nofile = nofile.and_then(|limit| usize::try_from(limit).ok());
        let defaults = Limits::default();
        let all = defaults.all_connections.available_permits();
        let all = all.min(nofile.unwrap_or(usize::MAX) / 4 / DESCRIPTORS);
        Self {
            limits: Limits {
                connections: defaults.connections.min(all / 4).max(1),
                all_connections: Arc::new(Semaphore::new(all.max(1))),
                ..defaults
            },
        }
    }

    /// Prepares the network of a process that is about to start.
    pub(crate) fn prepare(
        &self,
        request: &NetworkRequest,
        is_sandboxed: bool,
    ) -> Result<PreparedNetwork, StartError> {
        let mut prepared = PreparedNetwork {
            config: request.proxy.clone().unwrap_or_default(),
            variables: Vec::new(),
            host: Listeners::default(),
            forwards: request.loopback_ports.clone(),
            limits: self.limits.clone(),
        };
        let Some(config) = &request.proxy else {
            return Ok(prepared);
        };
        let address = if request.is_enforced && is_sandboxed {
            let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            ProxyAddress {
                http: local(HTTP_PORT),
                socks: config.socks.then(|| local(SOCKS_PORT)),
            }
        } else {
            let bound = Listeners::bind_loopback(config.socks);
            let (host, address) = bound.map_err(StartError::NetworkProxy)?;
            prepared.host = host;
            address
        };
        prepared.variables = variables(address, config.allow_local);
        Ok(prepared)
    }
}

/// The network of a process that is about to start.
pub(crate) struct PreparedNetwork {
    config: ProxyConfig,
    variables: Vec<(&'static str, String)>,
    /// The listeners of a proxy that is not enforced.
    host: Listeners,
    /// The ports of the host's loopback address that the process reaches, if it has no proxy.
    forwards: Vec<u16>,
    limits: Limits,
}

impl PreparedNetwork {
    /// Replaces the variables that point programs to a proxy.
    pub(crate) fn set_variables(&self, env: &mut Vec<(OsString, OsString)>) {
        let is_replaced = |name: &OsString| self.variables.iter().any(|(other, _)| name == other);
        env.retain(|(name, _)| !is_replaced(name));
        let variables = self.variables.iter();
        env.extend(variables.map(|(name, value)| (name.into(), value.into())));
    }

    /// Starts the proxy of the process `id`. `inside` are the listeners in its network namespace.
    pub(crate) fn start(
        self,
        inside: Vec<TcpListener>,
        session: &Session,
        id: &str,
    ) -> Result<ProcessNetwork, StartError> {
        let mut listeners = self.host;
        let mut inside = inside.into_iter();
        if self.variables.is_empty() {
            listeners.forwards = self.forwards.into_iter().zip(inside).collect();
        } else if let Some(http) = inside.next() {
            listeners.http = Some(http);
            listeners.socks = inside.next();
        }
        let terminated = CancellationToken::new();
        let decider = SessionDecider {
            session: session.clone(),
            id: id.to_owned(),
            terminated: terminated.clone(),
        };
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        let proxy = Proxy::start(
            listeners,
            Parts {
                config: self.config,
                decider: Some(Arc::new(decider)),
                dialer: Arc::new(SystemDialer),
                events: sender,
                limits: self.limits,
            },
        );
        let proxy = proxy.map_err(StartError::NetworkProxy)?;
        Ok(ProcessNetwork {
            handle: ProxyActivity {
                activity: Arc::clone(proxy.activity()),
                terminated,
            },
            events,
            proxy,
        })
    }
}

/// The running proxy of a process.
pub(crate) struct ProcessNetwork {
    pub(crate) handle: ProxyActivity,
    /// Ends when the proxy is dropped.
    pub(crate) events: mpsc::Receiver<NetworkDecision>,
    pub(crate) proxy: Proxy,
}

/// The part of a proxy that the handle of its process has.
#[derive(Clone, Debug)]
pub(crate) struct ProxyActivity {
    pub(crate) activity: Arc<Activity>,
    /// Cancelled when the termination of the process was requested: pending questions to the client are
    /// refused.
    pub(crate) terminated: CancellationToken,
}

/// Asks the connection that is attached to the session.
struct SessionDecider {
    session: Session,
    id: String,
    terminated: CancellationToken,
}

impl Decider for SessionDecider {
    fn decide(&self, target: NetworkTarget) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>> {
        Box::pin(async move {
            let link = self.session.link()?;
            // Ends without an answer if the connection does.
            let answer = link.decide_network(&self.id, target)?;
            tokio::select! {
                answer = answer => answer.ok(),
                () = self.terminated.cancelled() => None,
            }
        })
    }
}
