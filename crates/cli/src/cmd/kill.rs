//! `outpost kill`: ends or signals processes.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use outpost_client::{ProcessPeek, Signal, Terminate};
use tokio::time::timeout;

use super::runtime::run_command;
use crate::{
    args::{Kill, signal::name_of},
    detached::{self, Claim, ServerTarget},
    render::{errors, out},
};

/// Grace period of a termination.
const GRACE: Duration = Duration::from_secs(5);
/// Timeout for the exit of a killed process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Kill) -> ExitCode {
    run_command(kill(args))
}

async fn kill(args: &Kill) -> anyhow::Result<ExitCode> {
    let server = ServerTarget::from_on(args.on.on.as_deref());
    let mut code = ExitCode::SUCCESS;
    for id in &args.ids {
        match kill_one(&server, id, args.signal).await {
            Ok(message) => out::lines([message])?,
            Err(error) => {
                out::note(&errors::message(&error));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Ends or signals one process, and returns a message.
async fn kill_one(
    server: &ServerTarget,
    id: &str,
    signal: Option<Signal>,
) -> anyhow::Result<String> {
    // A command that follows it is disconnected, and reconnects.
    let opened = detached::open(server, id, Claim::Take).await?;
    let process = opened.process();
    let name = opened.found.name();
    if let Some(code) = opened.found.entry.exit_code {
        if signal.is_none() {
            let end = end_tree(&process, Duration::ZERO).await;
            end.with_context(|| format!("cannot end leftover processes of {name}"))?;
        }
        return Ok(format!("{name} had already exited with {code}"));
    }
    if let Some(signal) = signal {
        let sent = process.signal(signal).await;
        sent.with_context(|| format!("cannot signal {name}"))?;
        return Ok(format!("{name} got {}", name_of(signal)));
    }
    let ended = end_tree(&process, GRACE).await;
    ended.with_context(|| format!("cannot end {name}"))?;
    match timeout(
        GRACE + EXIT_TIMEOUT,
        exit_code(&process, opened.found.entry.next_seq),
    )
    .await
    {
        Ok(code) => Ok(format!("{name} has ended with {}", code?)),
        Err(_) => anyhow::bail!("{name} was killed and is still alive after {EXIT_TIMEOUT:?}"),
    }
}

async fn end_tree(process: &ProcessPeek, grace: Duration) -> Result<bool, outpost_client::Error> {
    let how = Terminate::new().grace(grace).tree();
    process.terminate(how).await
}

/// Waits for the exit code.
async fn exit_code(process: &ProcessPeek, next_seq: u64) -> anyhow::Result<i32> {
    let mut after = next_seq.saturating_sub(1);
    loop {
        let page = process.read(after, None, GRACE).await;
        let page = page.context("cannot read its exit code")?;
        if let Some(exit) = page.exit {
            return Ok(exit.code);
        }
        after = page.next_seq.saturating_sub(1).max(after);
    }
}
