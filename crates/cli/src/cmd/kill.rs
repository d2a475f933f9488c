//! `outpost kill`: ends processes, or signals them.

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use outpost_client::{Distant, SignalName, Terminate};
use tokio::time::timeout;

use super::task::perform;
use crate::{
    args::{Kill, signal::name_of},
    detached::{self, Claim, Site},
    render::{out, words},
};

/// How long a process is asked to end before it is made to.
const GRACE: Duration = Duration::from_secs(5);
/// How long what was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Kill) -> ExitCode {
    perform(kill(args))
}

async fn kill(args: &Kill) -> anyhow::Result<ExitCode> {
    let site = Site::of(args.on.on.as_deref());
    let mut code = ExitCode::SUCCESS;
    for id in &args.ids {
        match kill_one(&site, id, args.signal).await {
            Ok(words) => out::lines([words])?,
            Err(error) => {
                out::note(&words::of(&error));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Says what was done.
async fn kill_one(site: &Site, id: &str, signal: Option<SignalName>) -> anyhow::Result<String> {
    // Who follows it makes way, and comes back.
    let opened = detached::open(site, id, Claim::Take).await?;
    let process = opened.process();
    let name = opened.found.name();
    if let Some(code) = opened.found.entry.exit_code {
        if signal.is_none() {
            let end = end_tree(&process, Duration::ZERO).await;
            end.with_context(|| format!("cannot end what {name} left running"))?;
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
        GRACE + GONE_WITHIN,
        exit_code(&process, opened.found.entry.next_seq),
    )
    .await
    {
        Ok(code) => Ok(format!("{name} has ended with {}", code?)),
        Err(_) => anyhow::bail!("{name} was killed and is still there after {GONE_WITHIN:?}"),
    }
}

async fn end_tree(process: &Distant, grace: Duration) -> Result<bool, outpost_client::Error> {
    let how = Terminate {
        grace: Some(grace),
        tree: true,
    };
    process.terminate(how).await
}

/// Waits for the exit code; how much was written until then doesn't matter.
async fn exit_code(process: &Distant, next_seq: u64) -> anyhow::Result<i32> {
    let mut after = next_seq.saturating_sub(1);
    loop {
        let page = process.read(after, None, GRACE).await;
        let page = page.context("cannot see how it ends")?;
        if let Some(exit) = page.exit {
            return Ok(exit.code);
        }
        after = page.next_seq.saturating_sub(1).max(after);
    }
}
