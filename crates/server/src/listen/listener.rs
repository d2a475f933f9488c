//! A place that is listened on.

use super::{Listen, ListenError, tcp::TcpPlace, unix::UnixPlace};
use crate::Server;

/// A bound listener that accepts connections as soon as it is served.
pub struct Listener {
    place: Place,
}

enum Place {
    Tcp(TcpPlace),
    Unix(UnixPlace),
}

impl Listener {
    /// Binds a socket listener; standard input and output aren't one.
    pub fn bind(listen: &Listen) -> Result<Option<Listener>, ListenError> {
        let place = match listen {
            Listen::WebSocket(address) => Place::Tcp(TcpPlace::bind(*address)?),
            Listen::Unix(path) => Place::Unix(UnixPlace::bind(path)?),
            Listen::Stdio => return Ok(None),
        };
        Ok(Some(Listener { place }))
    }

    /// Where it can be reached.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.place {
            Place::Tcp(place) => place.url(),
            Place::Unix(place) => place.url(),
        }
    }

    /// Accepts connections until the server ends.
    pub async fn serve(self, server: Server) {
        match self.place {
            Place::Tcp(place) => place.serve(server).await,
            Place::Unix(place) => place.serve(server).await,
        }
    }
}
