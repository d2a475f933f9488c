//! Where detached work runs.

use std::time::Duration;

use outpost_client::{Error, Lease, Remote, RemoteOptions};

use crate::home::{self, StartIfMissing};

/// How long a connection to a server on this machine is tried to be brought
/// back: if it is lost the server has ended.
const RECOVER_WITHIN: Duration = Duration::from_secs(1);

/// The server that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The user's own.
    Home,
    /// The one at this URL.
    Url(String),
}

impl Site {
    /// What `--on` says, if anything.
    pub(crate) fn of(on: Option<&str>) -> Self {
        match on {
            Some(url) => Site::Url(url.to_owned()),
            None => Site::Home,
        }
    }

    /// A connection, for which the user's own server is started if need be.
    pub(crate) async fn connect(&self, options: RemoteOptions) -> anyhow::Result<Remote> {
        match self {
            Site::Home => home::connect(StartIfMissing::Yes, nearby(options)).await,
            Site::Url(url) => dial(url, options).await,
        }
    }

    /// A connection, unless the user's own server isn't running.
    pub(crate) async fn find(&self, options: RemoteOptions) -> anyhow::Result<Option<Remote>> {
        match self {
            Site::Home => home::find(nearby(options)).await,
            Site::Url(url) => dial(url, options).await.map(Some),
        }
    }
}

async fn dial(url: &str, options: RemoteOptions) -> anyhow::Result<Remote> {
    let options = match url.starts_with("unix:") {
        true => nearby(options),
        false => options,
    };
    let remote = Remote::connect(url, options).await;
    remote.map_err(|error| {
        let words = match &error {
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => {
                "cannot reach the server; see that it is running and that --on names it"
            }
            _ => "the server refuses",
        };
        anyhow::Error::new(error).context(words)
    })
}

/// For a command that asks something and goes: its session goes with it.
pub(crate) fn passing() -> RemoteOptions {
    RemoteOptions {
        client_name: "outpost".to_owned(),
        lease: Lease::For(Duration::ZERO),
        ..RemoteOptions::default()
    }
}

/// For a server on this machine.
fn nearby(mut options: RemoteOptions) -> RemoteOptions {
    options.limits.recover_within = RECOVER_WITHIN;
    options
}
