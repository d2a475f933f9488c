//! Launches a server and connects to its standard streams.

use std::{future::Future, pin::Pin, process::Stdio};

use parking_lot::Mutex;
use tokio::process::Command;

use super::dial::{DialError, Dialer, Transport};

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
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Fallback: the receiver gives it time to end by itself first.
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(DialError::Launch)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped");
        };
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
