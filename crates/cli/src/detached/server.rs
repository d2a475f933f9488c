//! The server that runs detached work: the server that `--on` names, or the user's own server.

use std::time::Duration;

use outpost_client::{DialError, Error, Lease, RemoteExecutor, RemoteOptions};

use crate::{endpoint::Endpoint, user_server};

/// Reconnect timeout for a server on this host: if the connection is lost, the server has
/// exited.
const LOCAL_RECONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects; starts the user's own server if necessary.
pub(crate) async fn connect(
    on: Option<&Endpoint>,
    options: RemoteOptions,
) -> anyhow::Result<RemoteExecutor> {
    match on {
        None => user_server::connect(local_options(options)).await,
        Some(server) => connect_to(server, options).await,
    }
}

/// Connects; none if the user's own server isn't running.
pub(crate) async fn connect_if_running(
    on: Option<&Endpoint>,
    options: RemoteOptions,
) -> anyhow::Result<Option<RemoteExecutor>> {
    match on {
        None => user_server::find(local_options(options)).await,
        Some(server) => connect_to(server, options).await.map(Some),
    }
}

async fn connect_to(server: &Endpoint, options: RemoteOptions) -> anyhow::Result<RemoteExecutor> {
    let options = if server.is_unix() {
        local_options(options)
    } else {
        options
    };
    let remote = server.connect(options).await;
    remote.map_err(|error| {
        let message = match &error {
            Error::Unreachable { source, .. } if !is_lost(source) => server.origin(),
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => {
                "cannot reach the server; check that it is running and that --on is correct"
                    .to_owned()
            }
            _ => "the server rejects the connection".to_owned(),
        };
        anyhow::Error::new(error).context(message)
    })
}

/// Whether the server did not answer. Otherwise the error says what to do.
fn is_lost(error: &DialError) -> bool {
    matches!(
        error,
        DialError::Connect(_) | DialError::UpgradeRequest(_) | DialError::RelayEnded { .. }
    )
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
