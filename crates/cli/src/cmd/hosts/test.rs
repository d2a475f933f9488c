//! `outpost hosts test`: connects to a host, and explains a failure.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use outpost_client::{DialError, Error, Executor as _, Lease, RemoteExecutor, RemoteOptions};

use crate::{
    args::{AccessArgs, server_or_launched},
    endpoint::Endpoint,
    exit,
    render::{
        errors,
        out::{self, note},
    },
    target::{Leftovers, disconnect},
};

/// Requests whose fastest answer is the round-trip time.
const REQUESTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Arguments of `outpost hosts test`.
#[derive(clap::Args, Debug)]
pub(crate) struct Test {
    /// The name of the host, or a URL
    #[arg(value_name = "HOST", value_parser = server_or_launched)]
    host: String,

    #[command(flatten)]
    access: AccessArgs,
}

/// Connects, and prints what was found.
pub(super) async fn test(args: &Test) -> anyhow::Result<ExitCode> {
    let server = Endpoint::resolve(&args.host, &args.access)?;
    let mut options = RemoteOptions::default()
        .client_name("outpost hosts test")
        .lease(Lease::For(Duration::ZERO));
    options.limits.connect_timeout = CONNECT_TIMEOUT;
    let started = Instant::now();
    let remote = match server.connect(options).await {
        Ok(remote) => remote,
        Err(error) => {
            note(&errors::chain_message(&error));
            if let Some(advice) = advice(&error, &server) {
                note(&advice);
            }
            return Ok(ExitCode::from(exit::UNREACHABLE));
        }
    };
    let connected = started.elapsed();
    let measured = round_trip(&remote).await;
    let info = remote.server_info();
    let version = info.map_or("unknown", |info| info.version.as_str());
    let lines = measured.map(|round_trip| {
        [
            format!("server      {}", server.description()),
            format!("version     {version}"),
            format!("connected   {}", millis(connected)),
            format!("round trip  {}", millis(round_trip)),
        ]
    });
    disconnect(&remote, Leftovers::None).await;
    out::lines(lines?)?;
    Ok(ExitCode::SUCCESS)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

async fn round_trip(remote: &RemoteExecutor) -> anyhow::Result<Duration> {
    let mut fastest = Duration::MAX;
    for _ in 0..REQUESTS {
        let started = Instant::now();
        let answer = remote.files().metadata("/").await;
        // A refusal is an answer too.
        if remote.wait_connected().await.is_err() {
            answer.context("the server does not answer")?;
        }
        fastest = fastest.min(started.elapsed());
    }
    Ok(fastest)
}

/// Explains what to do about a failed connection, beyond its message.
pub(crate) fn advice(error: &Error, server: &Endpoint) -> Option<String> {
    let name = server.description();
    let Error::Unreachable { source, .. } = error else {
        return match error {
            Error::TimedOut { .. } => Some(format!(
                "no response from {name}; check the address, and that no firewall drops packets"
            )),
            Error::Disconnected { .. } => Some(format!(
                "{name} ended the connection; check that it is an Outpost server"
            )),
            _ => None,
        };
    };
    Some(match &**source {
        error if error.is_not_listening() => {
            format!("nothing listens at {name}; check the port, and that the server runs")
        }
        DialError::Connect(_) => format!("check the name and the port of {name}, and the network"),
        DialError::UpgradeRequest(_) => {
            format!("check that {name} is an Outpost server, and its path if it is behind a proxy")
        }
        DialError::RelayEnded { .. } => {
            "check that `ssh HOST outpost --version` works without questions".to_owned()
        }
        _ => return None,
    })
}
