//! The changes of all watches of the command.

use std::time::Duration;

use outpost_client::{RemoteExecutor, WatchOptions};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{Watch, batch::Batch, watched_executor::WatchedExecutor};
use crate::{
    endpoint::Endpoint,
    render::out::note,
    target::{Leftovers, disconnect},
    transfer::LocationResolver,
};

/// Time in which changes of several paths become one batch. Those of one path are gathered by the
/// executor.
const MERGE_WITHIN: Duration = Duration::from_millis(50);

/// The watches on all executors.
pub(super) struct Batches {
    received: mpsc::Receiver<anyhow::Result<Batch>>,
    /// An error behind the changes that were returned last.
    failed: Option<anyhow::Error>,
    servers: Vec<Server>,
    /// A task for each executor.
    tasks: JoinSet<()>,
}

/// A server, with its latest connection.
struct Server {
    key: String,
    remote: watch::Receiver<Option<RemoteExecutor>>,
}

impl Batches {
    /// Opens all watches, and prints that they are open. Connects also to the server of the command.
    pub(super) async fn open(
        args: &Watch,
        locations: &LocationResolver,
        command_server: Option<&Endpoint>,
    ) -> anyhow::Result<Self> {
        let options = WatchOptions {
            recursive: !args.no_recursive,
        };
        let mut executors: Vec<WatchedExecutor> = Vec::new();
        let mut names = Vec::new();
        for (location, address) in args.paths.iter().zip(locations.addresses(&args.paths)?) {
            let given = location.given();
            names.push(given.to_string_lossy().into_owned());
            let (server, path) = address.into_parts();
            on(server, &mut executors, options).add(path, given);
        }
        if let Some(server) = command_server {
            on(Some(server.clone()), &mut executors, options);
        }
        let mut opened = Vec::new();
        for executor in executors {
            let watches = executor.open().await?;
            opened.push((executor, watches));
        }
        note(&format!("watching {}", names.join(", ")));
        let (batches, received) = mpsc::channel(1);
        let mut servers = Vec::new();
        let mut tasks = JoinSet::new();
        for (executor, watches) in opened {
            for given in watches.missing() {
                note(&format!("{given:?} does not exist yet; waiting for it"));
            }
            let (remote, latest) = watch::channel(watches.remote().cloned());
            if let Some(key) = executor.key() {
                servers.push(Server {
                    key: key.to_owned(),
                    remote: latest,
                });
            }
            tasks.spawn(executor.run(watches, remote, batches.clone()));
        }
        Ok(Batches {
            received,
            failed: None,
            servers,
            tasks,
        })
    }

    /// Waits for changes. An error after changes is returned by the next call. Not cancel safe.
    pub(super) async fn next(&mut self) -> anyhow::Result<Batch> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut batch = self.receive().await?;
        let until = Instant::now() + MERGE_WITHIN;
        while let Ok(next) = timeout_at(until, self.receive()).await {
            match next {
                Ok(next) => batch.merge(next),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok(batch)
    }

    async fn receive(&mut self) -> anyhow::Result<Batch> {
        match self.received.recv().await {
            Some(batch) => batch,
            None => anyhow::bail!("all watches have ended"),
        }
    }

    /// The latest connection to a server.
    pub(super) fn remote(&self, server: &Endpoint) -> Option<RemoteExecutor> {
        let mut servers = self.servers.iter();
        let server = servers.find(|other| other.key == server.key())?;
        server.remote.borrow().clone()
    }

    /// Ends all watches, and disconnects from all servers.
    pub(super) async fn close(mut self, leftovers: Leftovers) {
        self.tasks.shutdown().await;
        for server in &self.servers {
            let remote = server.remote.borrow().clone();
            if let Some(remote) = remote {
                disconnect(&remote, leftovers).await;
            }
        }
    }
}

/// The entry of an executor, which is added if it is not there yet.
fn on(
    server: Option<Endpoint>,
    executors: &mut Vec<WatchedExecutor>,
    options: WatchOptions,
) -> &mut WatchedExecutor {
    let key = server.as_ref().map(Endpoint::key);
    let found = executors.iter().position(|other| other.key() == key);
    let index = found.unwrap_or(executors.len());
    if found.is_none() {
        executors.push(WatchedExecutor::new(server, options));
    }
    &mut executors[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_before_an_error_are_returned_first() {
        let (sender, received) = mpsc::channel(2);
        let mut batches = Batches {
            received,
            failed: None,
            servers: Vec::new(),
            tasks: JoinSet::new(),
        };
        let sent = [Ok(Batch::missed()), Err(anyhow::anyhow!("it has ended"))];
        for batch in sent {
            sender.send(batch).await.expect("it is received");
        }
        let first = batches.next().await.expect("the changes");
        assert_eq!(first, Batch::missed());
        let error = batches.next().await.expect_err("the error");
        assert_eq!(error.to_string(), "it has ended");
    }
}
