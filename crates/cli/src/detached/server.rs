//! The server that runs detached work.

use std::time::Duration;

use outpost_client::{Error, Lease, RemoteExecutor, RemoteOptions};

use crate::user_server::{self, StartIfMissing};

/// Reconnect timeout for a server on this host: if the connection is lost, the server has
/// exited.
const LOCAL_RECONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The server that a command refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerTarget {
    /// The user's own server.
    User,
    /// A server by its URL.
    Url(String),
}

impl ServerTarget {
    /// Interprets the value of `--on`.
    pub(crate) fn from_on(on: Option<&str>) -> Self {
        match on {
            Some(url) => ServerTarget::Url(url.to_owned()),
            None => ServerTarget::User,
        }
    }

    /// Connects; starts the user's own server if necessary.
    pub(crate) async fn connect(&self, options: RemoteOptions) -> anyhow::Result<RemoteExecutor> {
        match self {
            ServerTarget::User => {
                user_server::connect(StartIfMissing::Yes, local_options(options)).await
            }
            ServerTarget::Url(url) => connect_to_url(url, options).await,
        }
    }

    /// Connects; none if the user's own server isn't running.
    pub(crate) async fn find(
        &self,
        options: RemoteOptions,
    ) -> anyhow::Result<Option<RemoteExecutor>> {
        match self {
            ServerTarget::User => user_server::find(local_options(options)).await,
            ServerTarget::Url(url) => connect_to_url(url, options).await.map(Some),
        }
    }
}

async fn connect_to_url(url: &str, options: RemoteOptions) -> anyhow::Result<RemoteExecutor> {
    let options = if url.starts_with("unix:") {
        local_options(options)
    } else {
        options
    };
    let remote = RemoteExecutor::connect(url, options).await;
    remote.map_err(|error| {
        let message = match &error {
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => {
                "cannot reach the server; check that it is running and that --on is correct"
            }
            _ => "the server rejects the connection",
        };
        anyhow::Error::new(error).context(message)
    })
}

/// Options for a short command: the session ends with the connection.
pub(crate) fn brief_options() -> RemoteOptions {
    RemoteOptions::default()
        .client_name("outpost")
        .lease(Lease::For(Duration::ZERO))
}

/// Options for a server on this host.
fn local_options(mut options: RemoteOptions) -> RemoteOptions {
    options.limits.reconnect_timeout = LOCAL_RECONNECT_TIMEOUT;
    options
}
