//! The user's server is ended.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use anyhow::{Context, bail};
use outpost_client::{Remote, RemoteOptions, SessionEntry};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt::socket_peercred,
    process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::{connect::find, folder::Folder};

/// How long it may take to end; it gives itself 5 s.
const END_WITHIN: Timespec = Timespec {
    tv_sec: 15,
    tv_nsec: 0,
};

/// What became of the user's server.
pub(crate) enum Quit {
    /// There was none.
    NotRunning,
    /// It has ended, with these sessions.
    Ended(Vec<SessionEntry>),
}

/// Ends the user's server with everything it runs, and waits for that.
pub(crate) async fn quit(options: RemoteOptions) -> anyhow::Result<Quit> {
    let Some(remote) = find(options).await? else {
        return Ok(Quit::NotRunning);
    };
    let socket = Folder::of_user().socket();
    let shown = socket.display();
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) if is_gone(&error) => return Ok(Quit::NotRunning),
        Err(error) => return Err(error).with_context(|| format!("cannot connect to {shown}")),
    };
    let server = socket_peercred(&stream).context("cannot find out who the server is")?;
    let server = match pidfd_open(server.pid, PidfdFlags::empty()) {
        Ok(server) => server,
        Err(rustix::io::Errno::SRCH) => return Ok(Quit::NotRunning),
        Err(error) => return Err(error).context("cannot get hold of the server"),
    };
    // It answers after we have got hold of it, so it is the one we hold.
    let sessions = sessions(&remote).await?;
    pidfd_send_signal(&server, Signal::TERM).context("cannot signal the server")?;
    let ended = tokio::task::spawn_blocking(move || wait(server.as_fd())).await??;
    if !ended {
        bail!(
            "the server of this user hasn't ended within {} s; see its log {}",
            END_WITHIN.tv_sec,
            Folder::of_user().log().display()
        );
    }
    Ok(Quit::Ended(sessions))
}

async fn sessions(remote: &Remote) -> anyhow::Result<Vec<SessionEntry>> {
    let sessions = remote.sessions();
    let sessions = tokio::time::timeout(Duration::from_secs(5), sessions).await;
    sessions
        .context("the server doesn't answer")?
        .context("cannot ask the server what it runs")
}

fn wait(server: rustix::fd::BorrowedFd<'_>) -> io::Result<bool> {
    let mut ended = [PollFd::new(&server, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut ended, Some(&END_WITHIN)))?;
    Ok(ready > 0)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
