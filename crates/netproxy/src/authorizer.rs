//! Decides about one request: policy, decider, addresses.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outpost_types::{
    DecisionScope, DecisionSource, NetworkAnswer, NetworkDecision, NetworkProtocol, NetworkTarget,
    NetworkVerdict,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::decision::{DecisionLog, Record, timestamp};
use crate::{Addresses, Dial, Host, Policy, Reason, Verdict};

/// How long the resolution of a name may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// How many names of one process are resolved at the same time. Others wait.
const MAX_LOOKUPS: usize = 16;

/// The longest reason that a decider may give, in bytes. A longer one counts as no answer.
const MAX_REASON: usize = 1024;

/// The longest method of HTTP that is recorded, in characters. The rest of a longer one is cut off.
const MAX_METHOD: usize = 64;

/// A decision of the client; none if it did not answer.
pub type Decision = Option<NetworkAnswer>;

/// Decides about targets that no rule allows.
pub trait Decider: Send + Sync + 'static {
    /// Asks about a target. The future is dropped when the time for the decision is over.
    fn decide(&self, target: NetworkTarget) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>>;
}

/// A request to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) protocol: NetworkProtocol,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The method of an HTTP request.
    pub(crate) method: Option<String>,
    /// The address of the program's end of the connection.
    pub(crate) client: Option<SocketAddr>,
}

/// A request that is allowed.
#[derive(Debug)]
pub(crate) struct Authorized {
    /// Addresses to connect to, all of which are allowed.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Counts the bytes of the connection.
    pub(crate) record: Arc<Record>,
}

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) verdict: NetworkVerdict,
    pub(crate) source: DecisionSource,
    pub(crate) reason: Reason,
}

impl Refusal {
    fn by_policy(reason: Reason) -> Self {
        Self {
            verdict: NetworkVerdict::Deny,
            source: DecisionSource::BaselinePolicy,
            reason,
        }
    }

    /// Converts an answer of the decider that is no permission.
    fn by_decider(answer: Decision) -> Self {
        let (verdict, reason) = match answer {
            Some(NetworkAnswer::Ask { reason }) => (NetworkVerdict::Ask, reason),
            Some(NetworkAnswer::Deny { reason }) => (NetworkVerdict::Deny, reason),
            Some(NetworkAnswer::Allow) | None => (NetworkVerdict::Deny, None),
        };
        match reason {
            Some(reason) if reason.len() > MAX_REASON => Self::by_decider(None),
            reason => Self {
                verdict,
                source: DecisionSource::Decider,
                reason: match reason {
                    Some(reason) if !reason.is_empty() => Reason::Decider(reason),
                    _ => Reason::NotAllowed,
                },
            },
        }
    }
}

/// Decides about the requests of one process.
pub(crate) struct Authorizer {
    policy: Policy,
    /// The decider, and how long it may take.
    decider: Option<(Arc<dyn Decider>, Duration)>,
    dialer: Arc<dyn Dial>,
    lookups: Semaphore,
    log: DecisionLog,
}

impl Authorizer {
    pub(crate) fn new(
        policy: Policy,
        decider: Option<(Arc<dyn Decider>, Duration)>,
        dialer: Arc<dyn Dial>,
        log: DecisionLog,
    ) -> Self {
        Self {
            policy,
            decider,
            dialer,
            lookups: Semaphore::new(MAX_LOOKUPS),
            log,
        }
    }

    /// Decides about a request, and records the decision.
    pub(crate) async fn authorize(&self, request: &Request) -> Result<Authorized, Refusal> {
        let method = request.method.as_deref();
        let outcome = self.find_addresses(request).await;
        let mode = self
            .policy
            .judge_method(request.protocol, method, request.port);
        let record = self.record(request, outcome.as_ref().map(|(_, by_decider)| *by_decider));
        let (addresses, _) = outcome?;
        if let Err(reason) = mode {
            let refusal = Refusal {
                source: DecisionSource::ModeGuard,
                ..Refusal::by_policy(reason)
            };
            self.refuse(request, DecisionScope::NonDomain, &refusal);
            return Err(refusal);
        }
        Ok(Authorized { addresses, record })
    }

    /// Records a refusal for which the policy was not asked.
    pub(crate) fn refuse(&self, request: &Request, scope: DecisionScope, refusal: &Refusal) {
        let decision = self.decision(request, Err(refusal));
        self.log.add(NetworkDecision { scope, ..decision });
    }

    /// Returns the addresses of the target, if they are allowed, and whether the decider allowed it.
    async fn find_addresses(&self, request: &Request) -> Result<(Vec<SocketAddr>, bool), Refusal> {
        let Request { host, port, .. } = request;
        let (allowed, by_decider) = match self.policy.judge(host, *port) {
            Verdict::Allow(addresses) => (addresses, false),
            Verdict::Ask(addresses) => {
                self.ask(request).await?;
                (addresses, true)
            }
            Verdict::Deny(reason) => return Err(Refusal::by_policy(reason)),
        };
        let refused = Refusal::by_policy;
        let found = self.resolve(host, allowed).await;
        let found = found.ok_or_else(|| refused(Reason::NotAllowedLocal))?;
        for address in &found {
            let judged = self.policy.judge_address(*address, *port, allowed);
            judged.map_err(refused)?;
        }
        let addresses = found.into_iter();
        let addresses = addresses.map(|address| SocketAddr::new(address, *port));
        Ok((addresses.collect(), by_decider))
    }

    /// Asks the decider. Fails unless it allows the request.
    async fn ask(&self, request: &Request) -> Result<(), Refusal> {
        let Some((decider, limit)) = &self.decider else {
            return Err(Refusal::by_policy(Reason::NotAllowed));
        };
        let target = NetworkTarget {
            protocol: request.protocol,
            host: request.host.to_string(),
            port: request.port,
        };
        match timeout(*limit, decider.decide(target)).await {
            Ok(Some(NetworkAnswer::Allow)) => Ok(()),
            Ok(answer) => Err(Refusal::by_decider(answer)),
            Err(_) => Err(Refusal::by_decider(None)),
        }
    }

    /// Returns the addresses of a host; none if it has none or they are not found in time.
    async fn resolve(&self, host: &Host, allowed: Addresses) -> Option<Vec<IpAddr>> {
        let name = match host {
            Host::Address(address) => return Some(vec![*address]),
            // Allowed by name: always this host, without asking the resolver.
            Host::Name(name) if name == "localhost" && allowed == Addresses::Any => {
                return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            Host::Name(name) => name,
        };
        let lookup = async {
            let _permit = self.lookups.acquire().await.ok()?;
            self.dialer.resolve(name).await.ok()
        };
        let found = timeout(RESOLVE_TIMEOUT, lookup).await.ok().flatten()?;
        (!found.is_empty()).then_some(found)
    }

    fn record(&self, request: &Request, outcome: Result<bool, &Refusal>) -> Arc<Record> {
        self.log.add(self.decision(request, outcome))
    }

    /// Describes a decision: a permission, with whether the decider gave it, or a refusal.
    fn decision(&self, request: &Request, outcome: Result<bool, &Refusal>) -> NetworkDecision {
        let (decision, source, reason) = match outcome {
            Ok(false) => (
                NetworkVerdict::Allow,
                DecisionSource::BaselinePolicy,
                "allow",
            ),
            // As in the released servers: the reason for asking.
            Ok(true) => (
                NetworkVerdict::Allow,
                DecisionSource::Decider,
                Reason::NotAllowed.as_str(),
            ),
            Err(refusal) => (refusal.verdict, refusal.source, refusal.reason.as_str()),
        };
        let method = request.method.as_deref();
        NetworkDecision {
            timestamp: timestamp(),
            scope: DecisionScope::Domain,
            decision,
            source,
            reason: reason.to_owned(),
            protocol: request.protocol,
            host: request.host.to_string(),
            port: request.port,
            method: method.map(|method| method.chars().take(MAX_METHOD).collect()),
            client: request.client.map(|client| client.to_string()),
            policy_override: outcome == Ok(true),
        }
    }
}

#[cfg(test)]
mod tests;
