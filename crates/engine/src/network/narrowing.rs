//! The network of a process whose principal has a network policy. Pure.

use outpost_netproxy::{Policy, ProxyConfig, RuleSet};
use outpost_types::sandbox::{self, Network};

use super::NetworkRequest;
use crate::NotPermitted;

impl NetworkRequest {
    /// Narrows the network that a start asks for, if any beside that of its sandbox, to what the rules allow.
    /// A process that asks for the host's network gets what they allow; one that asks for none has none.
    ///
    /// # Errors
    /// If it asks for ports of the host, through which it could reach anything.
    pub fn narrowed(
        requested: Option<Self>,
        sandbox: Option<&sandbox::Policy>,
        rules: &RuleSet,
    ) -> Result<Option<Self>, NotPermitted> {
        let has_none = sandbox.is_some_and(|policy| policy.network == Network::Restricted);
        match requested {
            None if has_none => Ok(None),
            None => Ok(Some(Self::of_rules(rules.clone()))),
            Some(NetworkRequest {
                proxy: Some(proxy),
                is_enforced,
                ..
            }) => Ok(Some(NetworkRequest {
                proxy: Some(ProxyConfig {
                    policy: proxy.policy.narrowed(Policy::new(rules.clone())),
                    ..proxy
                }),
                loopback_ports: Vec::new(),
                is_enforced: is_enforced || !has_none,
                needs_sandbox: true,
            })),
            Some(NetworkRequest { proxy: None, .. }) => {
                Err(NotPermitted::Unconfinable("a managed network of ports"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use outpost_netproxy::{Addresses, Host, Verdict};

    use super::*;

    fn rules(patterns: &[&str]) -> RuleSet {
        let parsed = patterns.iter().map(|text| text.parse().expect("a rule"));
        RuleSet {
            allow: parsed.collect(),
            ..RuleSet::default()
        }
    }

    fn sandbox(network: Network) -> sandbox::Policy {
        sandbox::Policy {
            network,
            ..sandbox::Policy::read_only("/".as_ref())
        }
    }

    fn narrowed(
        requested: Option<NetworkRequest>,
        network: Option<Network>,
    ) -> Option<NetworkRequest> {
        let sandbox = network.map(sandbox);
        let limit = rules(&["**.a.test"]);
        NetworkRequest::narrowed(requested, sandbox.as_ref(), &limit).expect("permitted")
    }

    fn allows(request: &NetworkRequest, host: &str) -> bool {
        let policy = &request.proxy.as_ref().expect("a proxy").policy;
        let host = Host::parse(host).expect("a host");
        policy.judge(&host, 443) == Verdict::Allow(Addresses::Public)
    }

    #[test]
    fn network_of_the_host_becomes_that_of_the_rules() {
        for network in [None, Some(Network::Enabled)] {
            let request = narrowed(None, network).expect("a network");
            assert!(request.is_enforced && request.needs_sandbox);
            assert!(allows(&request, "a.test") && !allows(&request, "b.test"));
        }
        assert_eq!(narrowed(None, Some(Network::Restricted)), None);
    }

    #[test]
    fn proxy_of_the_request_is_narrowed_and_enforced() {
        for is_enforced in [true, false] {
            let requested = NetworkRequest {
                is_enforced,
                needs_sandbox: false,
                ..NetworkRequest::of_rules(rules(&["b.test", "x.a.test"]))
            };
            for network in [None, Some(Network::Enabled), Some(Network::Restricted)] {
                let request = narrowed(Some(requested.clone()), network).expect("a network");
                assert!(request.needs_sandbox);
                // Without enforcement, a process without a network doesn't reach its proxy.
                let has_none = network == Some(Network::Restricted);
                assert_eq!(request.is_enforced, is_enforced || !has_none);
                assert!(allows(&request, "x.a.test"));
                assert!(!allows(&request, "a.test") && !allows(&request, "b.test"));
            }
        }
    }

    #[test]
    fn ports_of_the_host_are_refused() {
        let requested = NetworkRequest {
            loopback_ports: vec![3128],
            is_enforced: true,
            ..NetworkRequest::default()
        };
        let narrowed = NetworkRequest::narrowed(Some(requested), None, &rules(&["*"]));
        assert!(narrowed.is_err());
    }
}
