//! Network policies by name, as written in a file.
//!
//! ```toml
//! [network_policies.packages]
//! include = ["cargo"]
//! allow = ["registry.example.com:443"]
//! deny = ["evil.example.com"]
//! allow_local_binding = false
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use outpost_engine::netproxy::{NetworkPolicies, NetworkPolicy};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::Config;

/// Values of `network` in a profile that are no names of policies.
const RESERVED: [&str; 2] = ["restricted", "enabled"];

/// `[network_policies.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NetworkPolicyTable {
    /// Names of policies whose rules it has too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<String>,
    /// Patterns of allowed hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    /// Patterns of denied hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
    /// Allows private and local addresses, if a pattern allows them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_local_binding: bool,
}

impl NetworkPolicyTable {
    /// Parses and checks the table `[network_policies.NAME]`.
    fn parse(name: &str, table: Value) -> anyhow::Result<Self> {
        ensure!(
            !name.is_empty() && !RESERVED.contains(&name),
            "expected names of network policies other than restricted and enabled"
        );
        let table: NetworkPolicyTable = serde_json::from_value(table)?;
        NetworkPolicy::parse(&table.allow, &table.deny)?;
        Ok(table)
    }

    pub(super) fn policy(&self) -> NetworkPolicy {
        NetworkPolicy {
            include: self.include.clone(),
            allow_local: self.allow_local_binding,
            // Checked when it was read.
            ..NetworkPolicy::parse(&self.allow, &self.deny).unwrap_or_default()
        }
    }
}

impl Config {
    /// Network policies by name.
    pub(crate) fn network_policies(&self) -> NetworkPolicies {
        let tables = self.network_policies.iter();
        let policies = tables.map(|(name, table)| (name.clone(), table.policy()));
        NetworkPolicies::new(policies.collect())
    }

    /// Checks that all network policies that are named exist.
    pub(super) fn check_network_policies(&self) -> anyhow::Result<()> {
        let policies = self.network_policies();
        let check = |setting: String, name: &str| {
            let rules = policies.named(name);
            rules.with_context(|| format!("invalid value for {setting}"))
        };
        for name in self.network_policies.keys() {
            check(format!("network_policies.{name}.include"), name)?;
        }
        for (profile, table) in &self.sandbox.profiles {
            if let Some(name) = &table.network_policy {
                check(format!("sandbox.profiles.{profile}.network"), name)?;
            }
        }
        for (principal, table) in &self.principals {
            if let Some(name) = &table.network {
                check(format!("principals.{principal}.network"), name)?;
            }
        }
        Ok(())
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, NetworkPolicyTable>, D::Error> {
    let tables = Map::deserialize(deserializer).map_err(|_| {
        D::Error::custom("expected a table for each, as in [network_policies.NAME]")
    })?;
    let parse = |(name, table): (String, Value)| {
        let policy = NetworkPolicyTable::parse(&name, table);
        let policy = policy.map_err(|error| D::Error::custom(format_args!("{name}: {error}")))?;
        Ok((name, policy))
    };
    tables.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn written_table_is_read_again() {
        let table = json!({
            "include": ["cargo"], "allow": ["*.a.test:443"], "deny": ["x.a.test"],
            "allow_local_binding": true,
        });
        let parsed = NetworkPolicyTable::parse("n", table.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), table);
        let policy = parsed.policy();
        assert_eq!((policy.allow.len(), policy.deny.len()), (1, 1));
        assert!(policy.allow_local && policy.include == ["cargo"]);
    }

    #[test]
    fn unusable_tables_say_what_is_expected() {
        let messages: Vec<_> = [
            ("enabled", json!({})),
            ("n", json!({"allowed": ["a.test"]})),
            ("n", json!({"allow": ["a b"]})),
            ("n", json!({"deny": ["*"]})),
        ]
        .into_iter()
        .map(|(name, table)| {
            NetworkPolicyTable::parse(name, table)
                .unwrap_err()
                .to_string()
        })
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        expected names of network policies other than restricted and enabled
        unknown field `allowed`, expected one of `include`, `allow`, `deny`, `allow_local_binding`
        invalid network policy: unsupported domain pattern syntax: a b
        invalid network policy: `*` may be allowed only; without a rule, nothing is allowed
        "#);
    }
}
