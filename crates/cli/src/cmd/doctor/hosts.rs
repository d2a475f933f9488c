//! Checks whether the configured hosts can be reached.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use outpost_client::{Executor as _, Lease, RemoteOptions};

use super::{Check, Finding, State, failed, unknown, works};
use crate::{
    args::{AccessArgs, LAUNCHED},
    cmd::hosts::advice,
    config::HostConfig,
    endpoint::Endpoint,
    render::errors,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to all hosts at once.
pub(super) async fn findings(hosts: BTreeMap<String, HostConfig>) -> Vec<Finding> {
    let checks: Vec<_> = hosts
        .into_iter()
        .map(|(name, host)| {
            let check = tokio::spawn(check(name.clone(), host));
            (name, check)
        })
        .collect();
    let mut findings = Vec::new();
    for (name, check) in checks {
        let check = check.await;
        let check = check.unwrap_or_else(|error| unknown(error.to_string()));
        findings.push(Finding::new(&format!("host {name}"), check));
    }
    findings
}

async fn check(name: String, host: HostConfig) -> Check {
    if host.url.starts_with(LAUNCHED) {
        return unknown(format!(
            "its command is not run here; `outpost hosts test {name}` runs it"
        ));
    }
    let hosts = BTreeMap::from([(name.clone(), host)]);
    let endpoint = match Endpoint::of_host(&name, &hosts, &AccessArgs::default()) {
        Ok(endpoint) => endpoint.unattended(),
        Err(error) => return failed(errors::message(&error)),
    };
    let mut options = RemoteOptions::default()
        .client_name("outpost doctor")
        .lease(Lease::For(Duration::ZERO));
    options.limits.connect_timeout = CONNECT_TIMEOUT;
    let started = Instant::now();
    match endpoint.connect(options).await {
        Ok(remote) => {
            let millis = started.elapsed().as_millis();
            let info = remote.server_info();
            let version = info.map_or("unknown", |info| &info.version);
            let found = format!("version {version}, connected in {millis} ms");
            // The server has answered, so an error while disconnecting does not matter.
            let _ = remote.close().await;
            works(found)
        }
        Err(error) => {
            let advice = advice(&error, &endpoint);
            (State::Failed, errors::chain_message(&error), advice)
        }
    }
}
