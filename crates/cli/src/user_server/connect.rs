//! Connects to the user's server, starts it if necessary, and stops it.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use anyhow::{Context, bail};
use outpost_client::{Error, Executor as _, Lease, RemoteExecutor, RemoteOptions, SessionEntry};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt::socket_peercred,
    process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::time::{Instant, sleep, timeout};

use super::{directory::RuntimeDirectory, launch::launch, running::server_process};
use crate::render::out::note;

/// Maximum number of starts. An idle server may exit before it is used.
const MAX_STARTS: usize = 3;
/// Timeout for a server without a socket to bind it again, which it does within 2 s, or to exit.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Poll interval of that.
const RESTORE_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout for its list of sessions, before it is stopped.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for its exit; its own limit is 5 s.
const EXIT_TIMEOUT: Timespec = Timespec {
    tv_sec: 15,
    tv_nsec: 0,
};

/// Connects to the user's server, which is started if necessary and accepts requests when this
/// returns.
pub(crate) async fn connect(options: RemoteOptions) -> anyhow::Result<RemoteExecutor> {
    if let Some(remote) = find(options.clone()).await? {
        return Ok(remote);
    }
    let directory = RuntimeDirectory::of_user();
    directory.create()?;
    let _lock = directory.lock().await?;
    let mut launched = Ok(());
    for _ in 0..MAX_STARTS {
        // Another command may have started it during the wait for the lock.
        if let Some(remote) = try_connect(&directory, options.clone()).await? {
            return Ok(remote);
        }
        launched = launch(&directory).await;
        if launched.is_err() {
            break;
        }
    }
    // The start may have failed because a server is running after all.
    match try_connect(&directory, options).await? {
        Some(remote) => Ok(remote),
        None => {
            launched?;
            bail!("your server exits as soon as it is started")
        }
    }
}

/// Opens a connection to the socket of the user's server, which is started if necessary.
pub(crate) async fn open_socket() -> anyhow::Result<tokio::net::UnixStream> {
    let directory = RuntimeDirectory::of_user();
    let socket = directory.socket();
    if directory.exists()?
        && let Ok(stream) = tokio::net::UnixStream::connect(&socket).await
    {
        return Ok(stream);
    }
    let options = RemoteOptions::default().client_name("outpost relay");
    let remote = connect(options.lease(Lease::For(Duration::ZERO))).await?;
    let stream = tokio::net::UnixStream::connect(&socket).await;
    let stream = stream.with_context(|| format!("cannot connect to {}", socket.display()))?;
    remote.close().await?;
    Ok(stream)
}

/// Connects to the user's server, if it is running. A server whose socket was removed is waited for,
/// because it binds the socket again.
pub(crate) async fn find(options: RemoteOptions) -> anyhow::Result<Option<RemoteExecutor>> {
    let directory = RuntimeDirectory::of_user();
    let url = directory.url()?;
    let deadline = Instant::now() + RESTORE_TIMEOUT;
    loop {
        if directory.exists()?
            && let Some(remote) = try_connect(&directory, options.clone()).await?
        {
            return Ok(Some(remote));
        }
        let Some(process) = server_process(&url) else {
            return Ok(None);
        };
        if Instant::now() >= deadline {
            bail!(
                "your server is running as process {process}, but nothing accepts connections at {url}; \
                 `kill {process}` ends it with everything it runs"
            );
        }
        sleep(RESTORE_INTERVAL).await;
    }
}

async fn try_connect(
    directory: &RuntimeDirectory,
    options: RemoteOptions,
) -> anyhow::Result<Option<RemoteExecutor>> {
    match RemoteExecutor::connect(&directory.url()?, options).await {
        Ok(remote) => {
            let theirs = remote.server_info().map(|info| info.version.as_str());
            if let Some(message) = version_warning(env!("CARGO_PKG_VERSION"), theirs) {
                note(&message);
            }
            Ok(Some(remote))
        }
        Err(error) if is_not_running(&error) => Ok(None),
        Err(error) => Err(error).context("cannot connect to your server"),
    }
}

/// Returns whether no server is running: there is no socket, nothing accepts on it, or the server
/// was just exiting.
fn is_not_running(error: &Error) -> bool {
    match error {
        Error::Disconnected { .. } => true,
        Error::Unreachable { source, .. } => source.is_not_listening(),
        _ => false,
    }
}

/// A warning about a server of another version, which may not support every request.
fn version_warning(ours: &str, theirs: Option<&str>) -> Option<String> {
    let theirs = theirs.filter(|theirs| *theirs != ours)?;
    Some(format!(
        "your server is version {theirs}, this program is {ours}; \
         `outpost stop` stops it with everything it runs"
    ))
}

/// The message for a user whose server was killed. Only the next server can find the remaining
/// processes.
pub(crate) const WAS_KILLED: &str = "your server was killed, and some of what it ran may still be running; \
     `outpost run --detach` starts another one, which ends and names it";

/// Returns whether the user's server, which is not running, has left its socket. It removes it when it
/// ends by itself.
pub(crate) fn was_killed() -> bool {
    let directory = RuntimeDirectory::of_user();
    matches!(directory.exists(), Ok(true)) && directory.socket().exists()
}

/// Stops the user's server with everything it runs, and waits for its exit. Returns its sessions;
/// none if it wasn't running.
pub(crate) async fn stop(options: RemoteOptions) -> anyhow::Result<Option<Vec<SessionEntry>>> {
    let Some(remote) = find(options).await? else {
        return Ok(None);
    };
    let directory = RuntimeDirectory::of_user();
    let socket = directory.socket();
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot connect to {}", socket.display()));
        }
    };
    let server = socket_peercred(&stream).context("cannot determine the server's process id")?;
    let server = match pidfd_open(server.pid, PidfdFlags::empty()) {
        Ok(server) => server,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error).context("cannot open the server's pidfd"),
    };
    // The server responds after the pidfd was opened, so the pidfd refers to this server.
    let sessions = timeout(LIST_TIMEOUT, remote.sessions()).await;
    let sessions = sessions
        .context("the server doesn't respond")?
        .context("cannot list the server's processes")?;
    pidfd_send_signal(&server, Signal::TERM).context("cannot signal the server")?;
    let waiting = tokio::task::spawn_blocking(move || {
        let server = server.as_fd();
        let mut ended = [PollFd::new(&server, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ended, Some(&EXIT_TIMEOUT)))
    });
    if waiting.await?? == 0 {
        bail!(
            "your server didn't exit within {} s; see its log {}",
            EXIT_TIMEOUT.tv_sec,
            directory.log().display()
        );
    }
    Ok(Some(sessions))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_mismatch_is_reported() {
        assert_eq!(version_warning("1.2.3", Some("1.2.3")), None);
        assert_eq!(version_warning("1.2.3", None), None);
        let message = version_warning("1.2.3", Some("1.2.2")).unwrap();
        assert!(
            message.contains("version 1.2.2, this program is 1.2.3"),
            "{message}"
        );
    }
}
