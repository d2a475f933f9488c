//! WebSocket over TCP.

use std::{io, net::SocketAddr, time::Duration};

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::ListenError;
use crate::{Server, http};

/// How long a listener rests after an accept that failed for want of
/// descriptors or memory: at once it would fail again, and burn the processor.
pub(super) const REST: Duration = Duration::from_millis(50);

pub(super) struct TcpPlace {
    listener: TcpListener,
    address: SocketAddr,
}

impl TcpPlace {
    pub(super) fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        let bound = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(TcpPlace {
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
                () = server.ending().cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    tune(&stream, server.settings().unsent_bytes);
                    http::accept(&server, stream);
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}

/// Nagle's algorithm would hold small messages back for 40 ms, and a full send
/// buffer would let nothing overtake what is in it.
fn tune(stream: &TcpStream, unsent_bytes: u32) {
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_notsent_lowat(unsent_bytes));
    if let Err(error) = tuned {
        tracing::debug!(%error, "failed to tune a socket");
    }
}
