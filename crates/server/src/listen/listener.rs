//! Bound listeners.

use super::{Listen, ListenError, tcp::TcpEndpoint, unix::UnixEndpoint};
use crate::Server;

/// A bound listener. It accepts connections once it is served.
pub struct Listener {
    endpoint: Endpoint,
}

enum Endpoint {
    Tcp(TcpEndpoint),
    Unix(UnixEndpoint),
}

impl Listener {
    /// Binds a socket. Returns `None` for standard input and output.
    pub fn bind(listen: &Listen) -> Result<Option<Listener>, ListenError> {
        let endpoint = match listen {
            Listen::WebSocket(address) => Endpoint::Tcp(TcpEndpoint::bind(*address)?),
            Listen::Unix(path) => Endpoint::Unix(UnixEndpoint::bind(path)?),
            Listen::Stdio => return Ok(None),
        };
        Ok(Some(Listener { endpoint }))
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp(endpoint) => endpoint.url(),
            Endpoint::Unix(endpoint) => endpoint.url(),
        }
    }

    /// Accepts connections until the server shuts down.
    pub async fn serve(self, server: Server) {
        match self.endpoint {
            Endpoint::Tcp(endpoint) => endpoint.serve(server).await,
            Endpoint::Unix(endpoint) => endpoint.serve(server).await,
        }
    }
}
