//! Configurations that are rejected before anything starts.

use outpost_testkit::sh;
use serde_json::{Value, json};

use super::{proxy, sandbox};
use crate::{outpost, ready};

#[tokio::test]
async fn invalid_configurations_are_rejected_in_every_combination() {
    let (_server, client) = ready().await;
    let denies_all = "invalid network proxy config: invalid value for network.denied_domains: * (allowed \
                      exact hosts or scoped wildcards like *.example.com or **.example.com)";
    let disabled = "invalid network proxy config: executor-local network proxy launch requires an enabled \
                    proxy";
    let masking = "credential masking is not supported by this executor: send networkProxy without \
                   credentialMasking and credentialProviders";
    for (network, message) in [
        (
            json!({"proxy": proxy(json!({}), json!({"enabled": false}))}),
            disabled,
        ),
        (
            json!({"proxy": proxy(json!({"*": "deny"}), json!({}))}),
            denies_all,
        ),
        (
            json!({"proxy": proxy(json!({"a b": "allow"}), json!({}))}),
            "invalid network proxy config: unsupported domain pattern syntax: a b",
        ),
        (
            json!({"proxy": proxy(json!({"**": "allow"}), json!({}))}),
            "invalid network proxy config: unsupported repeated wildcard: **",
        ),
        (
            json!({"proxy": proxy(json!({"": "allow"}), json!({}))}),
            "invalid network proxy config: domain pattern is empty",
        ),
        (
            json!({"proxy": proxy(json!({}), json!({"credentialMasking": true}))}),
            masking,
        ),
        (
            json!({"proxy": proxy(json!({}), json!({"credentialProviders": {"x": {"env": ["A"]}}}))}),
            masking,
        ),
        (
            json!({"proxy": proxy(json!({}), json!({})), "policyDecisionTimeoutMs": 0}),
            "network policy decision callback timeout must be nonzero",
        ),
        (json!({}), "missing field `proxy`"),
        (json!({"proxy": {}}), "missing field `enabled`"),
        (
            json!({"proxy": proxy(json!({"a": "perhaps"}), json!({}))}),
            "unknown variant `perhaps`, expected one of `none`, `allow`, `deny`",
        ),
        (
            json!({"proxy": proxy(json!({}), json!({"mode": "x"}))}),
            "unknown variant `x`, expected `limited` or `full`",
        ),
        (
            json!({"proxy": proxy(json!({}), json!({"reviewDomains": null}))}),
            "invalid type: null, expected a sequence",
        ),
    ] {
        for enforce in [true, false] {
            for is_sandboxed in [true, false] {
                let mut start = sh("p", "true")
                    .with("enforceManagedNetwork", enforce)
                    .with("networkProxy", network.clone());
                if is_sandboxed {
                    start = start.with("sandbox", sandbox("enabled"));
                }
                let error = client.start_fails(start).await;
                assert_eq!(
                    (error.code, &*error.message),
                    (-32602, message),
                    "{network}"
                );
            }
        }
    }
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn network_that_can_not_be_enforced_is_rejected() {
    let level = ["--sandbox-level", "landlock"];
    let server = outpost().args(&level).start().await;
    let client = server.client().await;
    let info = client.call("environment/info", json!({})).await;
    let capabilities = &info["capabilities"];
    assert_eq!(capabilities["networkProxyLaunch"], false);
    assert_eq!(capabilities["networkProxyReviewDomains"], false);
    for (name, value) in [
        (
            "networkProxy",
            json!({"proxy": proxy(json!({}), json!({}))}),
        ),
        ("managedNetwork", json!({"loopbackPorts": [1]})),
    ] {
        let start = sh("p", "true")
            .with("sandbox", sandbox("enabled"))
            .with("enforceManagedNetwork", true)
            .with(name, value);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602);
        let message = "sandbox intent cannot be enforced on this executor: ";
        assert!(error.message.starts_with(message), "{}", error.message);
        assert!(error.message.contains("landlock"), "{}", error.message);
    }
}

#[tokio::test]
async fn capabilities_say_what_can_be_enforced() {
    let (_server, client) = ready().await;
    let info = client.call("environment/info", json!({})).await;
    let is_enforceable = info["sandbox"]["type"] == "linuxSeccomp";
    let capabilities = &info["capabilities"];
    for name in ["networkProxyLaunch", "networkProxyReviewDomains"] {
        assert_eq!(capabilities[name], Value::Bool(is_enforceable), "{name}");
    }
    assert_eq!(capabilities["credentialMasking"], false);
}
