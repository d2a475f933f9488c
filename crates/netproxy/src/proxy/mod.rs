//! The proxy of one process.
//!
//! - [`http`]: HTTP requests and `CONNECT`; [`response`]: the proxy's own responses
//! - [`socks`]: SOCKS5; [`forward`]: ports of the host's loopback address
//! - [`tunnel`]: relays bytes; [`metered`]: counts and bounds them
//! - [`upstream`]: the proxy of the executor itself

mod forward;
mod headers;
mod http;
mod metered;
mod response;
mod socks;
mod tunnel;
mod upstream;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::authorizer::Authorizer;
use crate::decision::DecisionLog;
use crate::{Activity, Decider, DecisionSender, Dial, ProxyAddress, ProxyConfig, Record};
pub(crate) use metered::Metered;
pub(crate) use tunnel::relay;
use upstream::Upstream;

/// How long to wait after a connection could not be accepted, for lack of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Limits of a proxy.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of connections at the same time. Further connections wait to be accepted.
    pub connections: usize,
    /// A permit for each connection of all proxies of this program.
    pub all_connections: Arc<Semaphore>,
    /// The bytes of all connections, in both directions. Then they are closed.
    pub bytes: u64,
    /// The size of the head of a request or response.
    pub head_bytes: usize,
    /// How long the head of a request may take, and how long a connection may wait for one.
    pub head_timeout: Duration,
    /// How long a connection may be without traffic.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 2048,
            all_connections: Arc::new(Semaphore::new(16 * 1024)),
            bytes: u64::MAX,
            head_bytes: 64 * 1024,
            head_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(3600),
        }
    }
}

/// The listeners of a proxy.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Accepts HTTP.
    pub http: Option<std::net::TcpListener>,
    /// Accepts SOCKS5.
    pub socks: Option<std::net::TcpListener>,
    /// Accept connections to these ports of the host's loopback address.
    pub forwards: Vec<(u16, std::net::TcpListener)>,
}

impl Listeners {
    /// Listens on unused ports of this host's loopback address, which any process of the host can reach.
    ///
    /// # Errors
    /// If there are no free ports or descriptors.
    pub fn bind_loopback(socks: bool) -> io::Result<(Self, ProxyAddress)> {
        let bind = || std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let http = bind()?;
        let socks = if socks { Some(bind()?) } else { None };
        let address = ProxyAddress {
            http: http.local_addr()?,
            socks: match &socks {
                Some(socks) => Some(socks.local_addr()?),
                None => None,
            },
        };
        let listeners = Self {
            http: Some(http),
            socks,
            forwards: Vec::new(),
        };
        Ok((listeners, address))
    }
}

/// A running proxy. Dropping it closes its listeners and connections.
#[derive(Debug)]
pub struct Proxy {
    activity: Arc<Activity>,
    _accepting: Vec<AbortOnDropHandle<()>>,
}

/// The parts of a proxy that the caller provides.
pub struct Parts {
    /// The configuration.
    pub config: ProxyConfig,
    /// Decides about targets that no rule allows, if the configuration asks it.
    pub decider: Option<Arc<dyn Decider>>,
    /// Resolves names and connects.
    pub dialer: Arc<dyn Dial>,
    /// Receives the decisions.
    pub events: DecisionSender,
    /// The limits.
    pub limits: Limits,
}

impl Proxy {
    /// Starts to serve `listeners`, on the runtime of the calling task.
    ///
    /// # Errors
    /// If a listener can't be registered with the runtime.
    pub fn start(listeners: Listeners, parts: Parts) -> io::Result<Self> {
        let activity = Arc::<Activity>::default();
        let log = DecisionLog {
            events: parts.events,
            activity: Arc::clone(&activity),
        };
        let decider = parts.decider.zip(parts.config.decision_timeout);
        let upstream = parts.config.upstream.then(Upstream::of_this_program);
        let shared = Arc::new(Shared {
            authorizer: Authorizer::new(
                parts.config.policy,
                decider,
                Arc::clone(&parts.dialer),
                log,
            ),
            dialer: parts.dialer,
            upstream: upstream.unwrap_or_default(),
            activity: Arc::clone(&activity),
            connections: Arc::new(Semaphore::new(parts.limits.connections)),
            limits: parts.limits,
        });
        let http = listeners.http.map(|http| (Protocol::Http, http));
        let socks = listeners.socks.map(|socks| (Protocol::Socks, socks));
        let forwards = listeners.forwards.into_iter();
        let forwards = forwards.map(|(port, listener)| (Protocol::Forward(port), listener));
        let all = http.into_iter().chain(socks).chain(forwards);
        let accepting = all.map(|(protocol, listener)| accept_on(listener, &shared, protocol));
        Ok(Self {
            activity,
            _accepting: accepting.collect::<io::Result<_>>()?,
        })
    }

    /// Returns its decisions and traffic.
    #[must_use]
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

/// State that the connections of a proxy share.
struct Shared {
    authorizer: Authorizer,
    dialer: Arc<dyn Dial>,
    upstream: Upstream,
    activity: Arc<Activity>,
    connections: Arc<Semaphore>,
    limits: Limits,
}

/// The protocol that a program speaks to the proxy.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http,
    Socks,
    /// None: the bytes go to this port of the host's loopback address.
    Forward(u16),
}

impl Shared {
    /// Counts the bytes of a connection to a target.
    fn metered(&self, stream: TcpStream, record: Option<Arc<Record>>) -> Metered<TcpStream> {
        Metered::new(
            stream,
            record,
            Arc::clone(&self.activity),
            self.limits.bytes,
        )
    }
}

fn accept_on(
    listener: std::net::TcpListener,
    shared: &Arc<Shared>,
    protocol: Protocol,
) -> io::Result<AbortOnDropHandle<()>> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let shared = Arc::clone(shared);
    Ok(AbortOnDropHandle::new(tokio::spawn(accept(
        listener, shared, protocol,
    ))))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, protocol: Protocol) {
    let local = listener.local_addr().ok();
    // Aborts the connections when this task is aborted.
    let mut connections = JoinSet::new();
    while let Some((stream, client, permits)) = next(&listener, &shared).await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            match protocol {
                Protocol::Http => http::serve(&shared, stream, client, local).await,
                Protocol::Socks => socks::serve(&shared, stream, client).await,
                Protocol::Forward(port) => forward::serve(&shared, stream, port).await,
            }
            drop(permits);
        });
    }
}

/// Accepts a connection once there is a permit for it. Returns none when the program ends.
async fn next(
    listener: &TcpListener,
    shared: &Shared,
) -> Option<(TcpStream, SocketAddr, [OwnedSemaphorePermit; 2])> {
    let own = Arc::clone(&shared.connections).acquire_owned();
    let own = own.await.ok()?;
    let all = Arc::clone(&shared.limits.all_connections).acquire_owned();
    let all = all.await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let _ = stream.set_nodelay(true);
                return Some((stream, client, [own, all]));
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection to a network proxy");
                // sleep: no event tells when there are descriptors again
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}
