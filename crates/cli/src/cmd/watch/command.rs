//! Runs the command after each batch of changes.

use std::{process::ExitCode, sync::Arc, time::Duration};

use outpost_client::{ConnectionState, Executor, Terminate};
use outpost_engine::sandbox::Level;

use super::{Watch, batch::Batch, batches::Batches};
use crate::{
    cmd::run::{self, Run},
    console::{Attachment, Notice, OnTermination, Outcome, Signals, attach},
    endpoint::Endpoint,
    exit,
    render::{errors, out::note},
    target::{self, Target},
};

/// Grace period of processes that a command leaves.
const GRACE: Duration = Duration::from_secs(2);

/// How a command ended.
enum CommandEnd {
    /// The command exited without being killed.
    Exited(ExitCode),
    /// The server's session ended, and the command with it.
    Lost,
    /// The command could not be started, or a signal or an error ends this program too.
    Final(ExitCode),
}

/// Runs the command after each batch of changes, until a signal or an error.
pub(super) async fn run_on_changes(
    args: &Watch,
    server: Option<&Endpoint>,
    batches: &mut Batches,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    let local = match server {
        Some(_) => None,
        None => Some(Arc::new(target::local(None, Level::default())?)),
    };
    let outcome = async {
        loop {
            let batch = match signals.unless_ended(batches.next()).await {
                Ok(batch) => batch?,
                Err(signal) => return Ok(exit::of_signal(signal)),
            };
            batch.tell_missed();
            if !batch.has_changes() {
                continue;
            }
            let remote = server.and_then(|server| batches.remote(server));
            let executor: Arc<dyn Executor> = match (&remote, &local) {
                (Some(remote), _) => Arc::new(remote.clone()),
                (None, Some(local)) => Arc::clone(local) as _,
                (None, None) => anyhow::bail!("there is no connection to the command's server"),
            };
            let target = Target { executor, remote };
            match run_command(args, &batch, server, &target, signals).await? {
                CommandEnd::Exited(code) if args.once => return Ok(code),
                CommandEnd::Exited(_) | CommandEnd::Lost => {}
                CommandEnd::Final(code) => return Ok(code),
            }
        }
    };
    let outcome = outcome.await;
    if let Some(local) = local {
        let _ = signals.unless_ended(local.close()).await;
    }
    outcome
}

async fn run_command(
    args: &Watch,
    batch: &Batch,
    server: Option<&Endpoint>,
    target: &Target,
    signals: &mut Signals,
) -> anyhow::Result<CommandEnd> {
    let command = Run {
        command: args.command.clone(),
        ..Run::default()
    };
    let start = run::program(&command, server)?.envs(batch.variables());
    let starting = target.executor.start(start);
    let process = match signals.unless_ended(starting).await {
        Ok(Ok(process)) => process,
        Ok(Err(error)) if has_lost_session(target) => {
            let message = errors::client_message(&error);
            note(&format!("cannot start the command: {message}"));
            return Ok(CommandEnd::Lost);
        }
        Ok(Err(error)) => {
            let code = exit::not_started(&args.command[0], &error);
            return Ok(CommandEnd::Final(code));
        }
        Err(signal) => return Ok(CommandEnd::Final(exit::of_signal(signal))),
    };
    let attachment = Attachment {
        process: &process,
        remote: target.remote.as_ref(),
        tty: false,
        stdin: None,
        since: 0,
        held_while_stopped: false,
        on_termination: OnTermination::TerminateOrKill,
        until: None,
        // The task of the watches reports the connection.
        notice: Notice::without_connection(),
    };
    let outcome = match attach(attachment, signals).await {
        Outcome::Failed(message) if has_lost_session(target) => {
            note(&format!("the command was lost: {message}"));
            return Ok(CommandEnd::Lost);
        }
        outcome => outcome,
    };
    let exited = match &outcome {
        Outcome::Exited(code) | Outcome::ExitedWithLeftovers(code) => Some(*code),
        _ => None,
    };
    let code = exit::after(&process, outcome).await;
    // Without leftovers it has no effect; released servers do not support it.
    let _ = process
        .terminate_with(Terminate::new().grace(GRACE).tree())
        .await;
    if let Some(signal) = signals.received() {
        return Ok(CommandEnd::Final(exit::of_signal(signal)));
    }
    match exited {
        Some(0) => {}
        Some(_) if args.once => {}
        Some(code) => note(&format!(
            "the command exited with {code}; waiting for changes"
        )),
        None => return Ok(CommandEnd::Final(code)),
    }
    Ok(CommandEnd::Exited(code))
}

/// Whether the session of the command has failed, so that another one may be opened.
fn has_lost_session(target: &Target) -> bool {
    let remote = target.remote.as_ref();
    remote.is_some_and(|remote| {
        matches!(
            *remote.connection_state().borrow(),
            ConnectionState::Failed { .. }
        )
    })
}
