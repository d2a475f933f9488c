//! Where files are.

use std::{collections::HashMap, path::PathBuf};

use outpost_client::{Files, Place as _, Remote, RemoteOptions};

use crate::{
    args::Location,
    farewell::{Remains, take_leave},
    target,
};

/// The servers that a command has to do with, each connected to once.
pub(crate) struct Sites {
    /// What `--on` says.
    named: Option<String>,
    client_name: &'static str,
    servers: HashMap<String, Remote>,
}

/// What a command line can't mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Senseless {
    #[error(":{} is on a server that --on names", .0.display())]
    Unnamed(PathBuf),
    #[error("- is for `outpost cp` only")]
    Stream,
}

/// A path and the place it is in.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) files: Files,
    pub(crate) path: PathBuf,
    /// Which server, if it isn't here.
    pub(crate) server: Option<String>,
}

impl Sites {
    pub(crate) fn new(named: Option<&str>, client_name: &'static str) -> Self {
        Sites {
            named: named.map(str::to_owned),
            client_name,
            servers: HashMap::new(),
        }
    }

    /// Whether a location names anything, before anybody is connected to.
    pub(crate) fn check(&self, location: &Location) -> Result<(), Senseless> {
        match location {
            Location::OnNamed(path) if self.named.is_none() => {
                Err(Senseless::Unnamed(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The same, where our own streams mean nothing.
    pub(crate) fn check_on(&self, location: &Location) -> Result<(), Senseless> {
        match location {
            Location::Stream => Err(Senseless::Stream),
            location => self.check(location),
        }
    }

    /// The files that a location of several is about; none for our own streams.
    pub(crate) async fn find(&mut self, location: &Location) -> anyhow::Result<Option<Site>> {
        let (server, path) = match location {
            Location::Stream => return Ok(None),
            Location::Here(path) => (None, path),
            Location::On { server, path } => (Some(server.clone()), path),
            Location::OnNamed(path) => match &self.named {
                Some(server) => (Some(server.clone()), path),
                None => return Err(Senseless::Unnamed(path.clone()).into()),
            },
        };
        let files = match &server {
            Some(server) => self.connect(server).await?,
            None => Files::here(),
        };
        // Nothing at all is where the place is.
        let path = match path.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => path.clone(),
        };
        Ok(Some(Site {
            files,
            path,
            server,
        }))
    }

    /// The same, where `--on` is about every path.
    pub(crate) async fn find_on(&mut self, location: &Location) -> anyhow::Result<Site> {
        let site = match location {
            Location::Here(path) if self.named.is_some() => {
                self.find(&Location::OnNamed(path.clone())).await?
            }
            location => self.find(location).await?,
        };
        site.ok_or_else(|| Senseless::Stream.into())
    }

    async fn connect(&mut self, server: &str) -> anyhow::Result<Files> {
        if let Some(remote) = self.servers.get(server) {
            return Ok(remote.files());
        }
        let options = RemoteOptions {
            client_name: self.client_name.to_owned(),
            ..RemoteOptions::default()
        };
        let remote = target::reach(server, options).await?;
        let files = remote.files();
        self.servers.insert(server.to_owned(), remote);
        Ok(files)
    }

    /// The servers that were connected to.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Remote> {
        self.servers.values()
    }

    /// Leaves all of them in good order.
    pub(crate) async fn leave(&self) {
        for remote in self.servers.values() {
            take_leave(remote, Remains::Nothing).await;
        }
    }
}
