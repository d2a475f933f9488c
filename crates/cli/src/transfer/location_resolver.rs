//! Resolves locations to files on this host or on servers.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use outpost_client::{Executor as _, Files, RemoteExecutor, RemoteOptions};

use super::file_error;
use crate::{
    args::{AccessArgs, Location, OnOrLaunch, UnusedAccess},
    config::{self, HostConfig, split_host_path},
    endpoint::Endpoint,
    render::{errors, out::note},
    target::{Leftovers, disconnect},
};

/// Servers used by a command, each connected to once.
pub(crate) struct LocationResolver {
    /// The server of `--on`.
    default_server: Option<Endpoint>,
    access: AccessArgs,
    /// Hosts by name, once a path may begin with one.
    hosts: OnceCell<BTreeMap<String, HostConfig>>,
    client_name: &'static str,
    servers: HashMap<String, RemoteExecutor>,
    /// The files of this host, whose watches share one inotify instance.
    here: Files,
}

/// A location that is invalid for the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocationError {
    #[error("cannot use :{}: --on is required to name the server", .0.display())]
    NoServer(PathBuf),
    #[error(
        "cannot use {given}: there is no host {name}, and no such file here; `outpost hosts list` lists \
         the hosts, and ./{given} is always a file here"
    )]
    NoHost { given: String, name: String },
    #[error("cannot use - here: only `outpost cp` reads stdin and writes stdout")]
    Stream,
}

/// A path and its server; none for this host.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    server: Option<Endpoint>,
    path: PathBuf,
}

/// A path on an executor.
#[derive(Clone, Debug)]
pub(crate) struct FileLocation {
    pub(crate) files: Files,
    pub(crate) path: PathBuf,
    /// The server as it was given; none for this host.
    pub(crate) server: Option<String>,
}

impl Address {
    /// Identifies the server among those of a command; none for this host.
    pub(crate) fn server_key(&self) -> Option<&str> {
        self.server.as_ref().map(Endpoint::key)
    }

    /// The server and the path.
    pub(crate) fn into_parts(self) -> (Option<Endpoint>, PathBuf) {
        (self.server, self.path)
    }
}

/// Whether a path exists, or its directory does, so that it can be meant as one of this host.
fn may_be_here(path: &Path) -> bool {
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    path.symlink_metadata().is_ok() || directory.is_some_and(Path::is_dir)
}

impl LocationResolver {
    pub(crate) fn new(on: &OnOrLaunch, client_name: &'static str) -> anyhow::Result<Self> {
        Ok(LocationResolver {
            default_server: on.default_endpoint()?,
            access: on.access.clone(),
            hosts: OnceCell::new(),
            client_name,
            servers: HashMap::new(),
            here: Files::here(),
        })
    }

    /// The server of `--on`; none for this host.
    pub(crate) fn default_server(&self) -> Option<&Endpoint> {
        self.default_server.as_ref()
    }

    /// Determines the server and the path, before connecting; none for stdin and stdout.
    pub(crate) fn address(&self, location: &Location) -> anyhow::Result<Option<Address>> {
        let (server, path) = match location {
            Location::Stream => return Ok(None),
            Location::Here(path) => self.on_named_host(path)?.unwrap_or((None, path.clone())),
            Location::On { server, path } => {
                (Some(Endpoint::resolve(server, &self.access)?), path.clone())
            }
            Location::OnDefault(path) if self.default_server.is_none() => {
                return Err(LocationError::NoServer(path.clone()).into());
            }
            Location::OnDefault(path) => (self.default_server.clone(), path.clone()),
        };
        let path = match &server {
            Some(server) => server.path(&path),
            None => path,
        };
        // An empty path is the working directory of the executor.
        let path = if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path
        };
        Ok(Some(Address { server, path }))
    }

    /// Determines the servers and the paths of a command where `--on` applies to every path.
    pub(crate) fn addresses(&self, paths: &[Location]) -> anyhow::Result<Vec<Address>> {
        let addresses = paths.iter().map(|path| {
            let address = match path {
                Location::Here(path) if self.default_server.is_some() => {
                    self.address(&Location::OnDefault(path.clone()))
                }
                path => self.address(path),
            };
            address?.ok_or_else(|| LocationError::Stream.into())
        });
        let addresses = addresses.collect::<anyhow::Result<Vec<_>>>()?;
        self.check_access(&addresses)?;
        Ok(addresses)
    }

    /// Checks that the flags for a server are given only if a path is on one.
    pub(crate) fn check_access<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<(), UnusedAccess> {
        let mut addresses = addresses.into_iter();
        let has_server = addresses.any(|address| address.server.is_some());
        self.access.check_used(has_server)
    }

    /// Splits `NAME:PATH` if there is a host with this name. Any other path is local, since file names
    /// may contain colons; but one that does not exist is taken for a mistyped name.
    fn on_named_host(&self, given: &Path) -> anyhow::Result<Option<(Option<Endpoint>, PathBuf)>> {
        let Some((name, path)) = given.to_str().and_then(split_host_path) else {
            return Ok(None);
        };
        let hosts = match self.hosts.get() {
            Some(hosts) => hosts,
            None => {
                let hosts = config::load_config(None)?.hosts()?;
                self.hosts.get_or_init(|| hosts)
            }
        };
        if !hosts.contains_key(name) {
            if may_be_here(given) {
                return Ok(None);
            }
            let error = LocationError::NoHost {
                given: given.display().to_string(),
                name: name.to_owned(),
            };
            return Err(error.into());
        }
        let server = Endpoint::of_host(name, hosts, &self.access)?;
        Ok(Some((Some(server), path.into())))
    }

    /// Connects to the server of a path.
    pub(crate) async fn open(&mut self, address: Address) -> anyhow::Result<FileLocation> {
        let Address { server, path } = address;
        let files = match &server {
            Some(server) => self.connect(server).await?,
            None => self.here.clone(),
        };
        Ok(FileLocation {
            files,
            path,
            server: server.map(|server| server.key().to_owned()),
        })
    }

    async fn connect(&mut self, server: &Endpoint) -> anyhow::Result<Files> {
        if let Some(remote) = self.servers.get(server.key()) {
            return Ok(remote.files());
        }
        let options = RemoteOptions::default().client_name(self.client_name.to_owned());
        let remote = server.connect(options).await?;
        let files = remote.files();
        self.servers.insert(server.key().to_owned(), remote);
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
    on: &OnOrLaunch,
    client_name: &'static str,
    paths: &[Location],
    mut work: impl AsyncFnMut(FileLocation) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut locations = LocationResolver::new(on, client_name)?;
    let addresses = locations.addresses(paths)?;
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
