//! A client and the server it is connected to.

use anyhow::Result;

use super::client::Client;
use super::server::{Candidate, Server};

/// The client goes first, so that a connection ends before its server does.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) server: Server,
}

impl Link {
    /// To a server of our own.
    pub(super) fn open(candidate: Candidate<'_>) -> Result<Self> {
        let server = candidate.start()?;
        let client = Client::connect(server.url())?;
        Ok(Self { client, server })
    }
}
