//! Resolves names and connects to addresses.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many names of all proxies are resolved at the same time. Each occupies a thread of the runtime until
/// the system's resolver gives up, which may be long after its result is of use.
const MAX_LOOKUPS: usize = 64;

static LOOKUPS: Semaphore = Semaphore::const_new(MAX_LOOKUPS);

/// How long one address may take to accept a connection while there are others.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The future of a [`Dial`].
pub type DialFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Resolves names and makes connections. Tests replace it, to have public addresses on the loopback.
pub trait Dial: Send + Sync + 'static {
    /// Returns the addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> DialFuture<'a, Vec<IpAddr>>;

    /// Connects to an address.
    fn connect(&self, address: SocketAddr) -> DialFuture<'_, TcpStream>;
}

/// Resolves names and makes connections like any program on this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDialer;

impl Dial for SystemDialer {
    fn resolve<'a>(&'a self, name: &'a str) -> DialFuture<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let found = (&*name, 0).to_socket_addrs();
                drop(permit);
                Ok(found?.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }

    fn connect(&self, address: SocketAddr) -> DialFuture<'_, TcpStream> {
        Box::pin(TcpStream::connect(address))
    }
}

/// Connects to the first address that accepts.
pub(crate) async fn connect(dialer: &dyn Dial, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match timeout(CONNECT_TIMEOUT, dialer.connect(*address)).await {
            Ok(Ok(stream)) => {
                // Relays small messages without delay.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}
