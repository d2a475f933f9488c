//! Launches commands whose standard input and output are a connection to a server.

use std::{
    future::Future,
    pin::Pin,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
};

use outpost_rpc::ws::UpgradeError;
use parking_lot::Mutex;
use tokio::{
    io::join,
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{
    dial::{Dialer, Transport, upgrade},
    dial_error::DialError,
};

/// Launches a command once. The server ends with its streams, so it can't be dialed again.
pub(crate) struct LaunchDialer {
    program: String,
    command: Mutex<Option<Command>>,
}

impl LaunchDialer {
    pub(crate) fn new(command: std::process::Command) -> Self {
        LaunchDialer {
            program: command.get_program().to_string_lossy().into_owned(),
            command: Mutex::new(Some(command.into())),
        }
    }

    fn launch(&self) -> Result<Transport, DialError> {
        let mut command = self.command.lock().take().ok_or(DialError::Spent)?;
        let (child, stdin, stdout) = spawn(&mut command)?;
        Ok(Transport {
            child: Some(child),
            ..Transport::lines(Box::new(stdout), Box::new(stdin))
        })
    }
}

impl Dialer for LaunchDialer {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        let launched = self.launch();
        Box::pin(async move { launched })
    }

    fn redials(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        self.program.clone()
    }
}

/// Launches a command that relays to a server's socket, once for each connection. Only the first one
/// may write to stderr: while a connection is being replaced, every attempt would report the same.
pub(crate) struct RelayDialer<C> {
    command: C,
    name: String,
    dialed: AtomicBool,
}

impl<C> RelayDialer<C> {
    pub(crate) fn new(command: C, name: String) -> Self {
        RelayDialer {
            command,
            name,
            dialed: AtomicBool::new(false),
        }
    }
}

impl<C: Fn(bool) -> std::process::Command + Send + Sync> Dialer for RelayDialer<C> {
    fn dial(&self) -> Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>> {
        Box::pin(async {
            let is_reconnect = self.dialed.swap(true, Ordering::Relaxed);
            let mut command = Command::from((self.command)(is_reconnect));
            if is_reconnect {
                command.stderr(Stdio::null());
            }
            let (mut child, stdin, stdout) = spawn(&mut command)?;
            // The socket at the other end is a unix socket, which needs no token.
            match upgrade(join(stdout, stdin), "localhost", "/", None).await {
                Ok(transport) => Ok(Transport {
                    child: Some(child),
                    ..transport
                }),
                // Its streams have ended, so it is about to end.
                Err(DialError::UpgradeRequest(UpgradeError::Io(_))) => {
                    let status = child.wait().await.map_err(DialError::Launch)?;
                    Err(DialError::RelayEnded { status })
                }
                Err(error) => Err(error),
            }
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Spawns a command with piped input and output.
fn spawn(command: &mut Command) -> Result<(Child, ChildStdin, ChildStdout), DialError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Fallback: the receiver first gives the server time to exit.
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(DialError::Launch)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        unreachable!("both are piped");
    };
    Ok((child, stdin, stdout))
}
