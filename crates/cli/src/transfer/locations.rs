//! Resolves locations to files on this host or on servers.

use std::{collections::HashMap, path::PathBuf};

use outpost_client::{Executor as _, Files, RemoteExecutor, RemoteOptions};

use crate::{
    args::Location,
    disconnect::{Leftovers, disconnect},
    target,
};

/// Servers used by a command, each connected to once.
pub(crate) struct Locations {
    /// The value of `--on`.
    default_server: Option<String>,
    client_name: &'static str,
    servers: HashMap<String, RemoteExecutor>,
}

/// A location that is invalid for the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocationError {
    #[error("cannot use :{}: --on is required to name the server", .0.display())]
    NoServer(PathBuf),
    #[error("cannot use - here: only `outpost cp` reads stdin and writes stdout")]
    Stream,
}

/// A path on an executor.
#[derive(Clone, Debug)]
pub(crate) struct FileLocation {
    pub(crate) files: Files,
    pub(crate) path: PathBuf,
    /// The server's URL; none for this host.
    pub(crate) server: Option<String>,
}

impl Locations {
    pub(crate) fn new(default_server: Option<&str>, client_name: &'static str) -> Self {
        Locations {
            default_server: default_server.map(str::to_owned),
            client_name,
            servers: HashMap::new(),
        }
    }

    /// Checks a location before connecting.
    pub(crate) fn check(&self, location: &Location) -> Result<(), LocationError> {
        match location {
            Location::OnDefault(path) if self.default_server.is_none() => {
                Err(LocationError::NoServer(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Checks a location for a command that can't use stdin and stdout.
    pub(crate) fn check_file(&self, location: &Location) -> Result<(), LocationError> {
        match location {
            Location::Stream => Err(LocationError::Stream),
            location => self.check(location),
        }
    }

    /// Resolves a location; none for stdin and stdout.
    pub(crate) async fn resolve(
        &mut self,
        location: &Location,
    ) -> anyhow::Result<Option<FileLocation>> {
        let (server, path) = match location {
            Location::Stream => return Ok(None),
            Location::Here(path) => (None, path),
            Location::On { server, path } => (Some(server.clone()), path),
            Location::OnDefault(path) => match &self.default_server {
                Some(server) => (Some(server.clone()), path),
                None => return Err(LocationError::NoServer(path.clone()).into()),
            },
        };
        let files = match &server {
            Some(server) => self.connect(server).await?,
            None => Files::here(),
        };
        // An empty path is the working directory of the executor.
        let path = if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path.clone()
        };
        Ok(Some(FileLocation {
            files,
            path,
            server,
        }))
    }

    /// Resolves a location for a command where `--on` applies to every path.
    pub(crate) async fn resolve_file(
        &mut self,
        location: &Location,
    ) -> anyhow::Result<FileLocation> {
        let location = match location {
            Location::Here(path) if self.default_server.is_some() => {
                self.resolve(&Location::OnDefault(path.clone())).await?
            }
            location => self.resolve(location).await?,
        };
        location.ok_or_else(|| LocationError::Stream.into())
    }

    async fn connect(&mut self, server: &str) -> anyhow::Result<Files> {
        if let Some(remote) = self.servers.get(server) {
            return Ok(remote.files());
        }
        let options = RemoteOptions::default().client_name(self.client_name.to_owned());
        let remote = target::reach(server, options).await?;
        let files = remote.files();
        self.servers.insert(server.to_owned(), remote);
        Ok(files)
    }

    /// The connected servers.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &RemoteExecutor> {
        self.servers.values()
    }

    /// Disconnects from all servers.
    pub(crate) async fn disconnect(&self) {
        for remote in self.servers.values() {
            disconnect(remote, Leftovers::None).await;
        }
    }
}
