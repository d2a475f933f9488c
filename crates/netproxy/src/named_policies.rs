//! Network policies by name, and the rules that a request asks for.

use std::collections::{BTreeMap, BTreeSet};

use outpost_types::NetworkPolicyParams;

use crate::{PatternError, Rule, RuleSet, presets};

/// The maximum number of patterns of a request with its named policy. Each decision compares with all.
const MAX_RULES: usize = 1024;

/// The longest part of a name in an error message, in characters.
const MAX_ECHOED: usize = 100;

/// A network policy of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// Names of policies whose rules it has too.
    pub include: Vec<String>,
    /// Allowed targets.
    pub allow: Vec<Rule>,
    /// Denied targets, whatever else allows them.
    pub deny: Vec<Rule>,
    /// Allows private and local addresses, if a rule allows them.
    pub allow_local: bool,
}

/// Network policies by name: those of the configuration, and the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPolicies {
    configured: BTreeMap<String, NetworkPolicy>,
}

/// A network policy that is invalid or does not exist. The texts are part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicy {
    /// A pattern is invalid.
    #[error("invalid network policy: {0}")]
    Pattern(#[from] PatternError),
    /// Everything is denied.
    #[error("invalid network policy: `*` may be allowed only; without a rule, nothing is allowed")]
    DeniesAll,
    /// There are too many patterns.
    #[error("invalid network policy: it may have {MAX_RULES} patterns at most")]
    TooManyRules,
    /// No policy has this name.
    #[error("there is no network policy {0:?}")]
    Unknown(String),
}

impl NetworkPolicy {
    /// Parses patterns.
    ///
    /// # Errors
    /// If one is invalid, or everything is denied.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Self, InvalidPolicy> {
        let parsed = |patterns: &[String]| -> Result<Vec<Rule>, PatternError> {
            patterns.iter().map(|pattern| pattern.parse()).collect()
        };
        let policy = NetworkPolicy {
            allow: parsed(allow)?,
            deny: parsed(deny)?,
            ..NetworkPolicy::default()
        };
        match policy.deny.iter().any(Rule::is_any) {
            true => Err(InvalidPolicy::DeniesAll),
            false => Ok(policy),
        }
    }
}

impl NetworkPolicies {
    /// Creates the policies of a configuration. The names in `include` are checked when a policy is used.
    #[must_use]
    pub fn new(configured: BTreeMap<String, NetworkPolicy>) -> Self {
        NetworkPolicies { configured }
    }

    /// Returns the names of all policies, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut names: BTreeSet<&str> = self.configured.keys().map(String::as_str).collect();
        for name in presets::names() {
            names.insert(name);
        }
        names.into_iter()
    }

    /// Returns the rules of a policy and the patterns of those that it includes. `allow_local` is that of the
    /// policy itself: that of an included one would apply to the patterns of all.
    ///
    /// # Errors
    /// If no policy has this name, or one that is included.
    pub fn named(&self, name: &str) -> Result<RuleSet, InvalidPolicy> {
        let mut rules = RuleSet::default();
        self.add(name, &mut rules, &mut BTreeSet::new())?;
        let policy = self.configured.get(name);
        rules.allow_local = policy.is_some_and(|policy| policy.allow_local);
        Ok(rules)
    }

    /// Returns the rules that a request asks for.
    ///
    /// # Errors
    /// If a pattern is invalid, there are too many, or no policy has the name.
    pub fn requested(&self, params: &NetworkPolicyParams) -> Result<RuleSet, InvalidPolicy> {
        if params.allow.len() + params.deny.len() > MAX_RULES {
            return Err(InvalidPolicy::TooManyRules);
        }
        let mut rules = match &params.policy {
            Some(name) => self.named(name)?,
            None => RuleSet::default(),
        };
        extend(
            &mut rules,
            &NetworkPolicy::parse(&params.allow, &params.deny)?,
        );
        rules.allow_local |= params.allow_local_binding;
        match rules.allow.len() + rules.deny.len() > MAX_RULES {
            true => Err(InvalidPolicy::TooManyRules),
            false => Ok(rules),
        }
    }

    /// Adds the patterns of a policy, unless it was added before. A configured policy takes the place of the
    /// built-in one with its name, and includes that by its own name.
    fn add<'a>(
        &'a self,
        name: &'a str,
        rules: &mut RuleSet,
        added: &mut BTreeSet<&'a str>,
    ) -> Result<(), InvalidPolicy> {
        if !added.insert(name) {
            return Ok(());
        }
        let Some(policy) = self.configured.get(name) else {
            return add_preset(name, rules);
        };
        extend(rules, policy);
        for included in &policy.include {
            if included != name {
                self.add(included, rules, added)?;
            } else if presets::preset(name).is_some() {
                add_preset(name, rules)?;
            }
        }
        Ok(())
    }
}

fn add_preset(name: &str, rules: &mut RuleSet) -> Result<(), InvalidPolicy> {
    let unknown = || InvalidPolicy::Unknown(name.chars().take(MAX_ECHOED).collect());
    extend(rules, &presets::preset(name).ok_or_else(unknown)?);
    Ok(())
}

impl From<&RuleSet> for NetworkPolicyParams {
    /// Returns the request of these rules without the name of a policy.
    fn from(rules: &RuleSet) -> Self {
        let texts = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect();
        NetworkPolicyParams {
            policy: None,
            allow: texts(&rules.allow),
            deny: texts(&rules.deny),
            allow_local_binding: rules.allow_local,
        }
    }
}

fn extend(rules: &mut RuleSet, policy: &NetworkPolicy) {
    rules.allow.extend_from_slice(&policy.allow);
    rules.deny.extend_from_slice(&policy.deny);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|text| (*text).to_owned()).collect()
    }

    fn policy(include: &[&str], allow: &[&str], deny: &[&str]) -> NetworkPolicy {
        NetworkPolicy {
            include: texts(include),
            ..NetworkPolicy::parse(&texts(allow), &texts(deny)).expect("valid")
        }
    }

    fn policies() -> NetworkPolicies {
        let local = NetworkPolicy {
            allow_local: true,
            ..policy(&[], &["localhost:80"], &[])
        };
        let all = [
            ("a", policy(&["b", "c"], &["a.test"], &[])),
            ("b", policy(&["a"], &["b.test:443"], &["evil.b.test"])),
            ("c", policy(&["b"], &["10.0.0.0/8:1-2"], &[])),
            ("local", local),
            ("broken", policy(&["missing"], &[], &[])),
        ];
        NetworkPolicies::new(all.map(|(name, policy)| (name.to_owned(), policy)).into())
    }

    fn shown(rules: &RuleSet) -> (Vec<String>, Vec<String>, bool) {
        let shown = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect();
        (shown(&rules.allow), shown(&rules.deny), rules.allow_local)
    }

    #[test]
    fn included_policies_are_added_once() {
        let rules = policies().named("a").expect("it exists");
        let allow = texts(&["a.test", "b.test:443", "10.0.0.0/8:1-2"]);
        assert_eq!(shown(&rules), (allow, texts(&["evil.b.test"]), false));
        assert!(!rules.asks && rules.review.is_empty());
    }

    #[test]
    fn configured_policy_replaces_or_extends_a_built_in_one() {
        let replaced = [("cargo", policy(&[], &["a.test"], &[]))];
        let extended = [("cargo", policy(&["cargo"], &["a.test"], &[]))];
        let cargo = |configured: [(&str, NetworkPolicy); 1]| {
            let configured = configured.map(|(name, policy)| (name.to_owned(), policy));
            let rules = NetworkPolicies::new(configured.into()).named("cargo");
            shown(&rules.expect("it exists")).0
        };
        let built_in = NetworkPolicies::default()
            .named("cargo")
            .expect("it exists");
        assert_eq!(cargo(replaced), ["a.test"]);
        let both = [texts(&["a.test"]), shown(&built_in).0].concat();
        assert_eq!(cargo(extended), both);
        let names: Vec<_> = NetworkPolicies::default()
            .names()
            .map(str::to_owned)
            .collect();
        assert_eq!(
            names,
            ["cargo", "debian", "git-https", "git-ssh", "npm", "pip"]
        );
    }

    #[test]
    fn replaced_built_in_policy_that_is_included_twice_stays_replaced() {
        let configured = [
            ("git-https", policy(&[], &["git.test:443"], &[])),
            ("tools", policy(&["git-https", "ci"], &[], &[])),
            ("ci", policy(&["git-https", "tools"], &["ci.test"], &[])),
        ];
        let configured = configured.map(|(name, policy)| (name.to_owned(), policy));
        let rules = NetworkPolicies::new(configured.into()).named("ci");
        let allow = texts(&["ci.test", "git.test:443"]);
        assert_eq!(shown(&rules.expect("it exists")).0, allow);
    }

    #[test]
    fn included_policy_does_not_allow_local_addresses_for_others() {
        let mut configured = policies().configured;
        configured.insert("all".to_owned(), policy(&["local"], &["*.test"], &[]));
        let rules = NetworkPolicies::new(configured).named("all");
        let allow = texts(&["*.test", "localhost:80"]);
        assert_eq!(shown(&rules.expect("it exists")), (allow, vec![], false));
    }

    #[test]
    fn request_adds_rules_to_those_of_a_name() {
        let params = NetworkPolicyParams {
            policy: Some("local".to_owned()),
            allow: texts(&["*.d.test"]),
            deny: texts(&["x.d.test"]),
            allow_local_binding: false,
        };
        let rules = policies().requested(&params).expect("valid");
        let allow = texts(&["localhost:80", "*.d.test"]);
        assert_eq!(shown(&rules), (allow, texts(&["x.d.test"]), true));
        let again = NetworkPolicies::default().requested(&(&rules).into());
        assert_eq!(again, Ok(rules));
        let empty = policies().requested(&NetworkPolicyParams::default());
        assert_eq!(empty, Ok(RuleSet::default()));
    }

    #[test]
    fn invalid_requests_are_rejected_with_the_reason() {
        let many = texts(&["a.test"; MAX_RULES]);
        for (policy, allow, deny, message) in [
            (
                None,
                texts(&["a b"]),
                vec![],
                "invalid network policy: unsupported domain pattern syntax: a b",
            ),
            (
                None,
                texts(&["https://a.test/"]),
                vec![],
                "invalid network policy: unsupported domain pattern syntax: https://a.test/",
            ),
            (
                None,
                vec![],
                texts(&["a.test:0-x"]),
                "invalid network policy: invalid port in the rule: a.test:0-x",
            ),
            (
                None,
                texts(&["10.0.0.1/8"]),
                vec![],
                "invalid network policy: invalid network in the rule: 10.0.0.1/8",
            ),
            (
                None,
                texts(&["*"]),
                texts(&["*"]),
                "invalid network policy: `*` may be allowed only; without a rule, nothing is allowed",
            ),
            (
                Some("local"),
                many.clone(),
                vec![],
                "invalid network policy: it may have 1024 patterns at most",
            ),
            (
                Some("none"),
                vec![],
                vec![],
                "there is no network policy \"none\"",
            ),
            (
                Some("broken"),
                vec![],
                vec![],
                "there is no network policy \"missing\"",
            ),
        ] {
            let params = NetworkPolicyParams {
                policy: policy.map(str::to_owned),
                allow,
                deny,
                allow_local_binding: false,
            };
            let error = policies().requested(&params).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
        let params = NetworkPolicyParams {
            allow: many,
            ..NetworkPolicyParams::default()
        };
        assert!(policies().requested(&params).is_ok());
    }
}
