//! Resolves locations to files on this host or on servers.

use std::{collections::HashMap, io, path::PathBuf, process::ExitCode};

use outpost_client::{Executor as _, Files, RemoteExecutor, RemoteOptions};

use super::file_error;
use crate::{
    args::Location,
    render::{errors, out::note},
    target::{Leftovers, disconnect, reach},
};

/// Servers used by a command, each connected to once.
pub(crate) struct LocationResolver {
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

/// A path, and the URL of its server; none for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    server: Option<String>,
    path: PathBuf,
}

/// A path on an executor.
#[derive(Clone, Debug)]
pub(crate) struct FileLocation {
    pub(crate) files: Files,
    pub(crate) path: PathBuf,
    /// The server's URL; none for this host.
    pub(crate) server: Option<String>,
}

impl LocationResolver {
    pub(crate) fn new(default_server: Option<&str>, client_name: &'static str) -> Self {
        LocationResolver {
            default_server: default_server.map(str::to_owned),
            client_name,
            servers: HashMap::new(),
        }
    }

    /// Determines the server and the path, before connecting; none for stdin and stdout.
    pub(crate) fn address(&self, location: &Location) -> Result<Option<Address>, LocationError> {
        let (server, path) = match location {
            Location::Stream => return Ok(None),
            Location::Here(path) => (None, path),
            Location::On { server, path } => (Some(server.clone()), path),
            Location::OnDefault(path) if self.default_server.is_none() => {
                return Err(LocationError::NoServer(path.clone()));
            }
            Location::OnDefault(path) => (self.default_server.clone(), path),
        };
        // An empty path is the working directory of the executor.
        let path = if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path.clone()
        };
        Ok(Some(Address { server, path }))
    }

    /// Connects to the server of a path.
    pub(crate) async fn open(&mut self, address: Address) -> anyhow::Result<FileLocation> {
        let Address { server, path } = address;
        let files = match &server {
            Some(server) => self.connect(server).await?,
            None => Files::here(),
        };
        Ok(FileLocation {
            files,
            path,
            server,
        })
    }

    async fn connect(&mut self, server: &str) -> anyhow::Result<Files> {
        if let Some(remote) = self.servers.get(server) {
            return Ok(remote.files());
        }
        let options = RemoteOptions::default().client_name(self.client_name.to_owned());
        let remote = reach(server, options).await?;
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

/// Does `work` for each path of a command where `--on` applies to every path. An error about a file
/// is reported, and makes the exit code 1; an error of stdout or of a server ends the command.
pub(crate) async fn for_each_file(
    on: Option<&str>,
    client_name: &'static str,
    paths: &[Location],
    mut work: impl AsyncFnMut(FileLocation) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut locations = LocationResolver::new(on, client_name);
    let addresses = paths.iter().map(|path| {
        let address = match path {
            Location::Here(path) if on.is_some() => {
                locations.address(&Location::OnDefault(path.clone()))
            }
            path => locations.address(path),
        };
        address?.ok_or(LocationError::Stream)
    });
    let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
    let outcome = async {
        let mut code = ExitCode::SUCCESS;
        for address in addresses {
            let location = locations.open(address).await?;
            match work(location).await {
                Ok(()) => {}
                Err(error) if error.is::<io::Error>() => return Err(error),
                Err(error) => {
                    note(&errors::message(&file_error(error)?));
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    };
    let outcome = outcome.await;
    locations.disconnect().await;
    outcome
}
