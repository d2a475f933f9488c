//! The configuration of a proxy from `networkProxy` of the wire.

use std::time::Duration;

use outpost_types::{DomainAccess, NetworkProxyConfig, NetworkProxyParams};

use crate::{PatternError, Policy, Rule, RuleSet};

/// The longest id of a process whose client decides about targets, in bytes.
const MAX_ID: usize = 256;

/// How long a decision may take beyond the client's own limit, for its way through the network.
const DECISION_GRACE: Duration = Duration::from_secs(5);

/// The configuration of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The policy.
    pub policy: Policy,
    /// How long to wait for a decision of the client; none if it isn't asked.
    pub decision_timeout: Option<Duration>,
    /// Whether SOCKS5 is offered.
    pub socks: bool,
    /// Whether public targets may be reached through the proxy that this program's variables name.
    pub upstream: bool,
    /// Whether local addresses are allowed, so that programs needn't use the proxy for them.
    pub allow_local: bool,
}

/// A configuration that is invalid on any host. The texts are part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A decision may take no time.
    #[error("network policy decision callback timeout must be nonzero")]
    ZeroTimeout,
    /// The process id can't be part of a question.
    #[error("callback-enabled process ID must be non-empty and at most {MAX_ID} bytes")]
    ProcessId,
    /// The proxy is disabled.
    #[error(
        "invalid network proxy config: executor-local network proxy launch requires an enabled proxy"
    )]
    Disabled,
    /// Everything is denied.
    #[error(
        "invalid network proxy config: invalid value for network.denied_domains: {0} (allowed exact \
         hosts or scoped wildcards like *.example.com or **.example.com)"
    )]
    DeniesAll(String),
    /// A pattern is invalid.
    #[error("invalid network proxy config: {0}")]
    Pattern(#[from] PatternError),
    /// Credential masking is asked for.
    #[error(
        "credential masking is not supported by this executor: send networkProxy without \
         credentialMasking and credentialProviders"
    )]
    CredentialMasking,
}

impl ProxyConfig {
    /// Returns the configuration for rules of our own policies.
    #[must_use]
    pub fn of_rules(rules: RuleSet) -> Self {
        Self {
            allow_local: rules.allow_local,
            policy: Policy::new(rules),
            decision_timeout: None,
            socks: true,
            upstream: true,
        }
    }

    /// Checks and converts the configuration for a process with this id.
    ///
    /// # Errors
    /// If it is invalid on every host, or asks for what no host offers.
    pub fn from_params(params: &NetworkProxyParams, process_id: &str) -> Result<Self, ConfigError> {
        let NetworkProxyParams {
            proxy,
            policy_decision_timeout_ms: timeout,
            ..
        } = params;
        if *timeout == Some(0) {
            return Err(ConfigError::ZeroTimeout);
        }
        if timeout.is_some() && !(1..=MAX_ID).contains(&process_id.len()) {
            return Err(ConfigError::ProcessId);
        }
        if !proxy.enabled {
            return Err(ConfigError::Disabled);
        }
        if proxy.credential_masking || !proxy.credential_providers.is_empty() {
            return Err(ConfigError::CredentialMasking);
        }
        let mut rules = rules(proxy)?;
        rules.asks = timeout.is_some();
        Ok(Self {
            policy: Policy::new(rules),
            decision_timeout: timeout
                .map(|ms| Duration::from_millis(ms).saturating_add(DECISION_GRACE)),
            socks: proxy.enable_socks5,
            upstream: proxy.allow_upstream_proxy,
            allow_local: proxy.allow_local_binding,
        })
    }
}

fn rules(proxy: &NetworkProxyConfig) -> Result<RuleSet, ConfigError> {
    let mut rules = RuleSet {
        mode: proxy.mode,
        allow_local: proxy.allow_local_binding,
        ..RuleSet::default()
    };
    for (pattern, access) in proxy.domains.iter().flatten() {
        let rule = Rule::parse_domain(pattern)?;
        match access {
            DomainAccess::None => {}
            DomainAccess::Allow => rules.allow.push(rule),
            DomainAccess::Deny if rule.is_any() => {
                return Err(ConfigError::DeniesAll(pattern.clone()));
            }
            DomainAccess::Deny => rules.deny.push(rule),
        }
    }
    for pattern in &proxy.review_domains {
        rules.review.push(Rule::parse_domain(pattern)?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use outpost_types::ProxyMode;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Addresses, Host, Reason, Verdict};

    fn params(changes: &Value) -> NetworkProxyParams {
        let mut proxy = json!({
            "enabled": true, "enableSocks5": true, "enableSocks5Udp": true, "allowUpstreamProxy": true,
            "dangerouslyAllowAllUnixSockets": false, "mode": "full", "allowLocalBinding": false,
            "domains": {"**.a.test": "allow", "evil.a.test": "deny", "none.test": "none"},
        });
        let members = proxy.as_object_mut().expect("an object");
        members.extend(changes.as_object().expect("an object").clone());
        let params = json!({"proxy": proxy, "environmentId": "remote"});
        serde_json::from_value(params).expect("params")
    }

    fn config(changes: &Value) -> Result<ProxyConfig, String> {
        let config = ProxyConfig::from_params(&params(changes), "p");
        config.map_err(|error| error.to_string())
    }

    #[test]
    fn domains_become_rules() {
        let judge = |config: &ProxyConfig, host: &str| {
            config.policy.judge(&Host::parse(host).expect("a host"), 1)
        };
        let plain = config(&json!({})).expect("valid");
        assert_eq!(judge(&plain, "a.test"), Verdict::Allow(Addresses::Public));
        assert_eq!(judge(&plain, "evil.a.test"), Verdict::Deny(Reason::Denied));
        assert_eq!(
            judge(&plain, "none.test"),
            Verdict::Deny(Reason::NotAllowed)
        );
        assert_eq!(plain.decision_timeout, None);
        assert!(plain.socks && plain.upstream && !plain.allow_local);
        for empty in [json!({"domains": null}), json!({"domains": {}})] {
            let empty = config(&empty).expect("valid");
            assert_eq!(judge(&empty, "a.test"), Verdict::Deny(Reason::NotAllowed));
        }
        let mut asking = params(&json!({"reviewDomains": ["x.a.test"]}));
        asking.policy_decision_timeout_ms = Some(1000);
        let asking = ProxyConfig::from_params(&asking, "p").expect("valid");
        assert_eq!(judge(&asking, "x.a.test"), Verdict::Ask(Addresses::Public));
        assert_eq!(asking.decision_timeout, Some(Duration::from_secs(6)));
        let limited = config(&json!({"mode": "limited", "enableSocks5": false})).expect("valid");
        assert_eq!(limited.policy.sets()[0].mode, ProxyMode::Limited);
        assert!(!limited.socks);
    }

    #[test]
    fn invalid_configurations_have_the_messages_of_released_servers() {
        let masking = "credential masking is not supported by this executor: send networkProxy without \
                       credentialMasking and credentialProviders";
        for (changes, message) in [
            (
                json!({"enabled": false}),
                "invalid network proxy config: executor-local network proxy launch requires an enabled \
                 proxy",
            ),
            (
                json!({"domains": {"*": "deny"}}),
                "invalid network proxy config: invalid value for network.denied_domains: * (allowed exact \
                 hosts or scoped wildcards like *.example.com or **.example.com)",
            ),
            (
                json!({"domains": {"": "allow"}}),
                "invalid network proxy config: domain pattern is empty",
            ),
            (
                json!({"domains": {"a b": "none"}}),
                "invalid network proxy config: unsupported domain pattern syntax: a b",
            ),
            (
                json!({"reviewDomains": ["**"]}),
                "invalid network proxy config: unsupported repeated wildcard: **",
            ),
            (json!({"credentialMasking": true}), masking),
            (json!({"credentialProviders": {"p": {}}}), masking),
        ] {
            assert_eq!(config(&changes), Err(message.to_owned()));
        }
    }

    #[test]
    fn deciding_client_needs_time_and_a_process_id() {
        let mut params = params(&json!({}));
        params.policy_decision_timeout_ms = Some(0);
        let config = |params: &_, id: &str| ProxyConfig::from_params(params, id).map(drop);
        assert_eq!(config(&params, "p"), Err(ConfigError::ZeroTimeout));
        params.policy_decision_timeout_ms = Some(u64::MAX);
        assert_eq!(config(&params, "p"), Ok(()));
        assert_eq!(config(&params, ""), Err(ConfigError::ProcessId));
        assert_eq!(config(&params, &"p".repeat(256)), Ok(()));
        assert_eq!(
            config(&params, &"p".repeat(257)),
            Err(ConfigError::ProcessId)
        );
    }
}
