//! Stops the user's server.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use anyhow::{Context, bail};
use outpost_client::{RemoteExecutor, RemoteOptions, SessionEntry};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt::socket_peercred,
    process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::{connect::find, directory::RuntimeDirectory};

/// Timeout for its exit; its own limit is 5 s.
const EXIT_TIMEOUT: Timespec = Timespec {
    tv_sec: 15,
    tv_nsec: 0,
};

/// Result of stopping the user's server.
pub(crate) enum StopOutcome {
    /// It wasn't running.
    NotRunning,
    /// It exited, with these sessions.
    Ended(Vec<SessionEntry>),
}

/// Stops the user's server with everything it runs, and waits for its exit.
pub(crate) async fn stop(options: RemoteOptions) -> anyhow::Result<StopOutcome> {
    let Some(remote) = find(options).await? else {
        return Ok(StopOutcome::NotRunning);
    };
    let socket = RuntimeDirectory::of_user().socket();
    let shown = socket.display();
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) if is_gone(&error) => return Ok(StopOutcome::NotRunning),
        Err(error) => return Err(error).with_context(|| format!("cannot connect to {shown}")),
    };
    let server = socket_peercred(&stream).context("cannot determine the server's process id")?;
    let server = match pidfd_open(server.pid, PidfdFlags::empty()) {
        Ok(server) => server,
        Err(rustix::io::Errno::SRCH) => return Ok(StopOutcome::NotRunning),
        Err(error) => return Err(error).context("cannot open the server's pidfd"),
    };
    // The server responds after the pidfd was opened, so the pidfd refers to this server.
    let sessions = sessions(&remote).await?;
    pidfd_send_signal(&server, Signal::TERM).context("cannot signal the server")?;
    let ended = tokio::task::spawn_blocking(move || wait(server.as_fd())).await??;
    if !ended {
        bail!(
            "your server didn't exit within {} s; see its log {}",
            EXIT_TIMEOUT.tv_sec,
            RuntimeDirectory::of_user().log().display()
        );
    }
    Ok(StopOutcome::Ended(sessions))
}

async fn sessions(remote: &RemoteExecutor) -> anyhow::Result<Vec<SessionEntry>> {
    let sessions = remote.sessions();
    let sessions = tokio::time::timeout(Duration::from_secs(5), sessions).await;
    sessions
        .context("the server doesn't respond")?
        .context("cannot list the server's processes")
}

fn wait(server: rustix::fd::BorrowedFd<'_>) -> io::Result<bool> {
    let mut ended = [PollFd::new(&server, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut ended, Some(&EXIT_TIMEOUT)))?;
    Ok(ready > 0)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
