//! Connections to a port of the host's loopback address, for a process whose client runs a proxy there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;

use super::{Shared, relay};

/// Serves one connection of the program.
pub(super) async fn serve(shared: &Arc<Shared>, stream: TcpStream, port: u16) {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match crate::dialer::connect(&*shared.dialer, &[target]).await {
        Ok(connected) => {
            let target = shared.metered(connected, None);
            relay(stream, target, shared.limits.idle_timeout).await;
        }
        Err(error) => tracing::debug!(%error, port, "cannot connect to a loopback port"),
    }
}
