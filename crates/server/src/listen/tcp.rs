//! WebSocket over TCP.

use std::{io, net::SocketAddr, time::Duration};

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::ListenError;
use crate::{Server, http};

/// Delay after a failed accept. Without descriptors or memory the next accept would fail at
/// once, in a busy loop.
pub(super) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

pub(super) struct TcpEndpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl TcpEndpoint {
    pub(super) fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        let bound = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(TcpEndpoint {
                listener: TcpListener::from_std(listener)?,
                address,
            })
        });
        bound.map_err(|os| match os.kind() {
            io::ErrorKind::AddrInUse => ListenError::PortInUse(address),
            _ => ListenError::Tcp { address, os },
        })
    }

    pub(super) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(super) async fn serve(self, server: Server) {
        loop {
            let accepted = tokio::select! {
                () = server.state.ending.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    tune(&stream, server.state.settings.unsent_bytes);
                    http::accept(&server.state, stream);
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
}

/// Disables Nagle's algorithm, which delays small messages by 40 ms, and bounds the unsent
/// bytes in the send buffer, which cannot be overtaken by urgent messages.
fn tune(stream: &TcpStream, unsent_bytes: u32) {
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_notsent_lowat(unsent_bytes));
    if let Err(error) = tuned {
        tracing::debug!(%error, "setting socket options failed");
    }
}
