//! The network that a start asks for. Pure.

use std::ffi::OsString;
use std::net::IpAddr;

use outpost_netproxy::{ConfigError, InvalidPolicy, NetworkPolicies, ProxyConfig, RuleSet};
use outpost_types::StartParams;

/// The port of the HTTP proxy on the loopback address of a network namespace.
pub(super) const HTTP_PORT: u16 = 43128;
/// The port of the SOCKS5 proxy there.
pub(super) const SOCKS_PORT: u16 = 41080;

/// The network of a process beside that of its sandbox policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRequest {
    /// The proxy that this program runs for the process.
    pub proxy: Option<ProxyConfig>,
    /// Ports of the host's loopback address that the process reaches on its own loopback address.
    pub loopback_ports: Vec<u16>,
    /// Whether the process reaches nothing else, if it is sandboxed.
    pub is_enforced: bool,
    /// Whether a process without a sandbox gets one for this network, which does not restrict its files.
    /// Otherwise the network of such a process is not enforced.
    pub needs_sandbox: bool,
}

/// A network that can't be had on any host. The text is part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// The proxy's configuration is invalid.
    #[error(transparent)]
    Proxy(#[from] ConfigError),
    /// There is no proxy that the process could use.
    #[error(
        "sandbox intent cannot be enforced on this executor: managed proxy mode requires proxy \
         environment variables"
    )]
    NoProxy,
    /// A variable names a proxy on another host.
    #[error(
        "sandbox intent cannot be enforced on this executor: managed proxy mode requires parseable \
         loopback proxy endpoints"
    )]
    ForeignProxy,
    /// The policy is invalid or does not exist.
    #[error(transparent)]
    Policy(#[from] InvalidPolicy),
    /// There are two networks.
    #[error("`network` cannot be combined with `networkProxy` or `managedNetwork`")]
    Combined,
}

/// Variables that name the proxy of a client, which runs on this host.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

impl NetworkRequest {
    /// Returns the network that a start asks for; none if it is that of the sandbox. `env` is the
    /// environment of the process.
    pub(crate) fn from_params(
        params: &StartParams,
        is_sandboxed: bool,
        env: &[(OsString, OsString)],
        policies: &NetworkPolicies,
    ) -> Result<Option<Self>, InvalidNetwork> {
        if let Some(network) = &params.network {
            return match (&params.network_proxy, &params.managed_network) {
                (None, None) => Ok(Some(Self::of_rules(policies.requested(network)?))),
                _ => Err(InvalidNetwork::Combined),
            };
        }
        let is_enforced = params.enforce_managed_network;
        if let Some(proxy) = &params.network_proxy {
            return Ok(Some(Self {
                proxy: Some(ProxyConfig::from_params(proxy, &params.process_id)?),
                loopback_ports: Vec::new(),
                is_enforced,
                needs_sandbox: false,
            }));
        }
        if !is_enforced || !is_sandboxed {
            return Ok(None);
        }
        let network = params.managed_network.as_ref();
        let mut ports = network.map_or_else(Vec::new, |network| network.loopback_ports.clone());
        if ports.is_empty() {
            ports = proxy_ports(env)?;
        }
        ports.sort_unstable();
        ports.dedup();
        Ok(Some(Self {
            proxy: None,
            loopback_ports: ports,
            is_enforced,
            needs_sandbox: false,
        }))
    }

    /// Returns the network of a process that reaches what the rules allow, with or without a sandbox.
    #[must_use]
    pub fn of_rules(rules: RuleSet) -> Self {
        Self {
            proxy: Some(ProxyConfig::of_rules(rules)),
            loopback_ports: Vec::new(),
            is_enforced: true,
            needs_sandbox: true,
        }
    }

    /// Returns the ports of the loopback address of a sandboxed process that this program accepts
    /// connections on, instead of any other network. None if the network is not enforced.
    pub(crate) fn ports_inside(&self) -> Vec<u16> {
        match &self.proxy {
            _ if !self.is_enforced => Vec::new(),
            Some(proxy) if proxy.socks => vec![HTTP_PORT, SOCKS_PORT],
            Some(_) => vec![HTTP_PORT],
            None => self.loopback_ports.clone(),
        }
    }
}

/// Returns the ports of the proxies that variables name, all of which must be on this host.
fn proxy_ports(env: &[(OsString, OsString)]) -> Result<Vec<u16>, InvalidNetwork> {
    let is_proxy = |name: &OsString| PROXY_VARIABLES.iter().any(|one| name == one);
    let named = env
        .iter()
        .filter(|(name, url)| is_proxy(name) && !url.is_empty());
    let ports = named.map(|(_, url)| {
        let port = url.to_str().and_then(loopback_port);
        port.ok_or(InvalidNetwork::ForeignProxy)
    });
    let ports: Vec<_> = ports.collect::<Result<_, _>>()?;
    match ports.is_empty() {
        true => Err(InvalidNetwork::NoProxy),
        false => Ok(ports),
    }
}

/// Returns the port of a URL whose host is the loopback address.
fn loopback_port(url: &str) -> Option<u16> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next()?;
    let address = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = address.rsplit_once(':')?;
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host == "[::1]",
    };
    is_loopback.then(|| port.parse().ok().filter(|port| *port > 0))?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(
        params: &Value,
        is_sandboxed: bool,
        env: &[(&str, &str)],
    ) -> Result<Option<NetworkRequest>, String> {
        let mut all = json!({"processId": "p", "argv": ["true"], "cwd": "file:///"});
        let members = all.as_object_mut().expect("an object");
        members.extend(params.as_object().expect("an object").clone());
        let params: StartParams = serde_json::from_value(all).expect("params");
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let request =
            NetworkRequest::from_params(&params, is_sandboxed, &env, &NetworkPolicies::default());
        request.map_err(|error| error.to_string())
    }

    fn proxy() -> Value {
        json!({
            "enabled": true, "enableSocks5": true, "enableSocks5Udp": true, "allowUpstreamProxy": true,
            "dangerouslyAllowAllUnixSockets": false, "mode": "full", "allowLocalBinding": false,
        })
    }

    #[test]
    fn proxy_takes_precedence_over_ports() {
        for (enforce, is_sandboxed) in [(true, true), (false, true), (true, false), (false, false)]
        {
            let params = json!({
                "networkProxy": {"proxy": proxy()}, "enforceManagedNetwork": enforce,
                "managedNetwork": {"loopbackPorts": [1]},
            });
            let request = request(&params, is_sandboxed, &[])
                .expect("valid")
                .expect("a network");
            assert!(request.proxy.is_some() && request.loopback_ports.is_empty());
            assert_eq!(request.is_enforced, enforce);
        }
    }

    #[test]
    fn ports_are_those_of_the_request_or_of_the_variables() {
        let enforce = json!({"enforceManagedNetwork": true});
        let ports = |params: &Value, env: &[(&str, &str)]| {
            let request = request(params, true, env)?.expect("a network");
            assert!(request.is_enforced && request.proxy.is_none());
            Ok::<_, String>(request.loopback_ports)
        };
        let named = json!({
            "enforceManagedNetwork": true, "managedNetwork": {"loopbackPorts": [9, 8, 9]},
        });
        assert_eq!(
            ports(&named, &[("HTTP_PROXY", "http://other:1")]),
            Ok(vec![8, 9])
        );
        for (url, port) in [
            ("http://127.0.0.1:8080", 8080),
            ("http://127.0.0.1:8080/", 8080),
            ("socks5h://user:secret@localhost:8081", 8081),
            ("127.0.0.2:8082", 8082),
            ("http://[::1]:8083/x:1", 8083),
        ] {
            assert_eq!(
                ports(&enforce, &[("ALL_PROXY", url)]),
                Ok(vec![port]),
                "{url}"
            );
        }
        let both = [
            ("HTTP_PROXY", "http://127.0.0.1:2"),
            ("https_proxy", "http://localhost:1"),
        ];
        assert_eq!(ports(&enforce, &both), Ok(vec![1, 2]));
        for url in [
            "http://proxy.test:1",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "x",
            "http://[::2]:1",
        ] {
            let error = ports(&enforce, &[both[0], ("HTTPS_PROXY", url)]).expect_err(url);
            assert_eq!(
                error,
                "sandbox intent cannot be enforced on this executor: managed proxy mode requires \
                 parseable loopback proxy endpoints"
            );
        }
        let error = ports(&enforce, &[("HTTP_PROXY", ""), ("NO_PROXY", "x")]).expect_err("none");
        assert_eq!(
            error,
            "sandbox intent cannot be enforced on this executor: managed proxy mode requires proxy \
             environment variables"
        );
    }

    #[test]
    fn network_of_the_policy_is_kept_otherwise() {
        let ports = json!({"managedNetwork": {"loopbackPorts": [1]}});
        assert_eq!(request(&ports, true, &[]), Ok(None));
        assert_eq!(
            request(&json!({"enforceManagedNetwork": true}), false, &[]),
            Ok(None)
        );
    }

    #[test]
    fn own_policy_is_enforced_with_and_without_a_sandbox() {
        let params = json!({"network": {"allow": ["a.test:443"]}});
        for is_sandboxed in [true, false] {
            let request = request(&params, is_sandboxed, &[]).expect("valid");
            let request = request.expect("a network");
            assert!(request.is_enforced && request.needs_sandbox);
            assert_eq!(request.ports_inside(), [HTTP_PORT, SOCKS_PORT]);
        }
        for other in [
            json!({"networkProxy": {"proxy": proxy()}}),
            json!({"managedNetwork": {"loopbackPorts": [1]}}),
        ] {
            let mut both = params.clone();
            let members = both.as_object_mut().expect("an object");
            members.extend(other.as_object().expect("an object").clone());
            let error = request(&both, true, &[]).expect_err("two networks");
            let message = "`network` cannot be combined with `networkProxy` or `managedNetwork`";
            assert_eq!(error, message);
        }
    }

    #[test]
    fn invalid_proxy_is_an_error_with_and_without_enforcement() {
        let mut proxy = proxy();
        proxy["enabled"] = false.into();
        for enforce in [true, false] {
            let params =
                json!({"networkProxy": {"proxy": proxy}, "enforceManagedNetwork": enforce});
            let error = request(&params, enforce, &[]).expect_err("is disabled");
            assert!(
                error.starts_with("invalid network proxy config: "),
                "{error}"
            );
        }
    }
}
