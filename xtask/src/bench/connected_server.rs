//! A server with a connected client.

use anyhow::Result;

use super::client::Client;
use super::server::{Candidate, Server};

/// Drops the client before the server.
pub(super) struct ConnectedServer {
    pub(super) client: Client,
    pub(super) server: Server,
}

impl ConnectedServer {
    /// Starts a server and connects to it.
    pub(super) fn open(candidate: Candidate<'_>) -> Result<Self> {
        let server = candidate.start()?;
        let client = Client::connect(server.url())?;
        Ok(Self { client, server })
    }
}
