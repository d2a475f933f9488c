//! A server that is launched for us, and spoken to through its standard streams.

use std::{
    future::Future,
    pin::Pin,
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use tokio::process::Command;

use super::{DialError, Dialer, Transport};

/// Launches a command, once: when its streams end it does, with everything it
/// runs.
pub(super) struct LaunchDialer {
    program: String,
    command: Mutex<Option<Command>>,
}

impl LaunchDialer {
    pub(super) fn new(command: std::process::Command) -> Self {
        LaunchDialer {
            program: command.get_program().to_string_lossy().into_owned(),
            command: Mutex::new(Some(command.into())),
        }
    }

    fn launch(&self) -> Result<Transport, DialError> {
        let command = self
            .command
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut command = command.ok_or(DialError::Spent)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The last resort: it is given time to end by itself first.
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(DialError::Launch)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for");
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
