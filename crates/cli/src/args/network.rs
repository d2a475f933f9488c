//! Flags for the network of a command.

use clap::ArgGroup;
use outpost_client::NetworkPolicyParams;
use outpost_engine::netproxy::{InvalidPolicy, NetworkPolicies, Rule, RuleSet};

use crate::config;

/// The network policy of a command.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "Network",
    group = ArgGroup::new("allowed_hosts").args(["net_policy", "allow_host"]).multiple(true)
)]
pub(crate) struct NetworkArgs {
    /// Allow only the network that this policy allows: a built-in one, or one of the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) net_policy: Option<String>,

    /// Allow only these hosts, such as example.com, '*.example.com:443' or 192.0.2.0/24, besides
    /// those of the policy; may be given more than once
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) allow_host: Vec<String>,

    /// Deny these hosts, whatever else allows them; may be given more than once
    #[arg(long, value_name = "PATTERN", value_parser = pattern, requires = "allowed_hosts")]
    pub(crate) deny_host: Vec<String>,
}

/// Checks a pattern. Servers of other versions may know others, so the text is passed on.
fn pattern(text: &str) -> Result<String, String> {
    match text.parse::<Rule>() {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "{error}; expected a pattern such as example.com, *.example.com:443, 192.0.2.0/24 or *"
        )),
    }
}

impl NetworkArgs {
    /// The requested policy, for an executor that knows the names of policies. `default` is the name of the
    /// policy without `--net-policy`.
    pub(crate) fn policy(&self, default: Option<&str>) -> Option<NetworkPolicyParams> {
        let policy = self.net_policy.as_deref().or(default);
        let is_requested = policy.is_some() || !self.allow_host.is_empty();
        is_requested.then(|| NetworkPolicyParams {
            policy: policy.map(str::to_owned),
            allow: self.allow_host.clone(),
            deny: self.deny_host.clone(),
            allow_local_binding: false,
        })
    }

    /// The rules of the requested policy, for a local command. Names are those of `policies`.
    pub(crate) fn rules(
        &self,
        policies: &NetworkPolicies,
        default: Option<&str>,
    ) -> anyhow::Result<Option<RuleSet>> {
        let requested = self.policy(default);
        let rules = requested.map(|requested| requested_rules(policies, &requested));
        rules.transpose()
    }

    /// The requested policy of a local command, with the rules of policies of the configuration.
    pub(crate) fn local_policy(&self) -> anyhow::Result<Option<NetworkPolicyParams>> {
        let policies = match &self.net_policy {
            Some(_) => config::load_config(None)?.network_policies(),
            None => NetworkPolicies::default(),
        };
        let rules = self.rules(&policies, None)?;
        Ok(rules.map(|rules| (&rules).into()))
    }
}

fn requested_rules(
    policies: &NetworkPolicies,
    requested: &NetworkPolicyParams,
) -> anyhow::Result<RuleSet> {
    policies.requested(requested).map_err(|error| match error {
        InvalidPolicy::Unknown(_) => {
            let names: Vec<_> = policies.names().collect();
            anyhow::anyhow!("{error}; there are {}", names.join(", "))
        }
        error => error.into(),
    })
}
