//! The policy of a process: decides about targets, as plain data.

use std::borrow::Cow;
use std::net::IpAddr;

use outpost_types::{NetworkProtocol, ProxyMode};

use crate::{Host, Rule, address};

/// Rules that a target must pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// Targets that are allowed. If empty, nothing is.
    pub allow: Vec<Rule>,
    /// Targets that are denied, whatever else allows them. A rule for an address also denies names that
    /// resolve to it.
    pub deny: Vec<Rule>,
    /// Targets that count as not allowed, so that the decider is asked.
    pub review: Vec<Rule>,
    /// The methods that are allowed.
    pub mode: ProxyMode,
    /// Allows private and local addresses too, if a rule allows them.
    pub allow_local: bool,
    /// Whether a decider may allow what no rule allows.
    pub asks: bool,
}

/// The policy of a process: rule sets that all must allow a target. A policy without rule sets allows
/// nothing.
///
/// A second set narrows a first one, as an operator's policy does with that of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    sets: Vec<RuleSet>,
}

/// A decision about a target, before its name is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target is allowed, if its addresses are allowed.
    Allow(Addresses),
    /// No rule allows the target, and the decider is asked. Its addresses must be allowed in any case.
    Ask(Addresses),
    /// The target is refused.
    Deny(Reason),
}

/// The addresses that a target may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Public addresses.
    Public,
    /// All.
    Any,
}

/// The reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule denies the target.
    Denied,
    /// No rule allows the target.
    NotAllowed,
    /// The target is private or local, or can't be resolved.
    NotAllowedLocal,
    /// The mode doesn't allow the method.
    MethodNotAllowed,
    /// The mode allows methods that an encrypted connection hides.
    MitmRequired,
    /// A limit of the proxy is reached.
    ProxyDisabled,
    /// The decider's own text.
    Decider(String),
}

impl Reason {
    /// Returns the word or text of the reason, which is part of the protocol.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Reason::Denied => "denied",
            Reason::NotAllowed => "not_allowed",
            Reason::NotAllowedLocal => "not_allowed_local",
            Reason::MethodNotAllowed => "method_not_allowed",
            Reason::MitmRequired => "mitm_required",
            Reason::ProxyDisabled => "proxy_disabled",
            Reason::Decider(text) => text,
        }
    }

    /// Returns the value of the header `x-proxy-error`, and the message for people.
    pub(crate) fn response(&self) -> (&'static str, Cow<'static, str>) {
        let (header, message) = match self {
            Reason::NotAllowed => ("blocked-by-allowlist", "Domain not in allowlist."),
            Reason::NotAllowedLocal => (
                "blocked-by-allowlist",
                "Sandbox policy blocks local/private network addresses.",
            ),
            Reason::Denied => (
                "blocked-by-denylist",
                "Domain denied by the sandbox policy.",
            ),
            Reason::MethodNotAllowed | Reason::MitmRequired => (
                "blocked-by-method-policy",
                "Method not allowed in limited mode.",
            ),
            Reason::ProxyDisabled | Reason::Decider(_) => {
                ("blocked-by-policy", "Request blocked by network policy.")
            }
        };
        (header, message.into())
    }
}

/// The methods of plain HTTP that [`ProxyMode::Limited`] allows.
const LIMITED_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

impl Policy {
    /// Creates a policy of one rule set.
    #[must_use]
    pub fn new(rules: RuleSet) -> Self {
        Self { sets: vec![rules] }
    }

    /// Narrows the policy: a target must be allowed by `other` too, whose refusals the decider can't lift.
    #[must_use]
    pub fn narrowed(mut self, other: Policy) -> Self {
        let others = other.sets.into_iter();
        self.sets
            .extend(others.map(|set| RuleSet { asks: false, ..set }));
        self
    }

    /// Returns the rule sets.
    #[must_use]
    pub fn sets(&self) -> &[RuleSet] {
        &self.sets
    }

    /// Judges a target as text.
    #[must_use]
    pub fn judge(&self, host: &Host, port: u16) -> Verdict {
        let matches = |rules: &[Rule]| rules.iter().any(|rule| rule.matches(host, port));
        if self.sets.iter().any(|set| matches(&set.deny)) {
            return Verdict::Deny(Reason::Denied);
        }
        let is_named = |set: &RuleSet| set.allow.iter().any(|rule| rule.names(host, port));
        let may_be_local =
            |set: &RuleSet| set.allow_local || (host.is_local_literal() && is_named(set));
        let allows_local = self.sets.iter().all(may_be_local);
        if host.is_local_literal() && !allows_local {
            return Verdict::Deny(Reason::NotAllowedLocal);
        }
        let addresses = match allows_local {
            true => Addresses::Any,
            false => Addresses::Public,
        };
        let allows = |set: &RuleSet| matches(&set.allow) && !matches(&set.review);
        let mut misses = self.sets.iter().filter(|set| !allows(set)).peekable();
        if self.sets.is_empty() {
            Verdict::Deny(Reason::NotAllowed)
        } else if misses.peek().is_none() {
            Verdict::Allow(addresses)
        } else if misses.all(|set| set.asks) {
            Verdict::Ask(addresses)
        } else {
            Verdict::Deny(Reason::NotAllowed)
        }
    }

    /// Judges one of the addresses of a target that is allowed otherwise.
    pub(crate) fn judge_address(
        &self,
        address: IpAddr,
        port: u16,
        allowed: Addresses,
    ) -> Result<(), Reason> {
        let mut denied = self.sets.iter().flat_map(|set| &set.deny);
        if denied.any(|rule| rule.matches_address(address, port)) {
            return Err(Reason::Denied);
        }
        match allowed {
            Addresses::Public if !address::is_public(address) => Err(Reason::NotAllowedLocal),
            Addresses::Public | Addresses::Any => Ok(()),
        }
    }

    /// Judges the method of a request. `method` is none for a protocol that hides it.
    pub(crate) fn judge_method(
        &self,
        protocol: NetworkProtocol,
        method: Option<&str>,
        port: u16,
    ) -> Result<(), Reason> {
        if self.sets.iter().all(|set| set.mode == ProxyMode::Full) {
            return Ok(());
        }
        match protocol {
            NetworkProtocol::Http if method.is_some_and(|one| LIMITED_METHODS.contains(&one)) => {
                Ok(())
            }
            NetworkProtocol::HttpsConnect => Err(Reason::MitmRequired),
            NetworkProtocol::Socks5Tcp if port == 443 => Err(Reason::MitmRequired),
            NetworkProtocol::Http | NetworkProtocol::Socks5Tcp | NetworkProtocol::Socks5Udp => {
                Err(Reason::MethodNotAllowed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASK: Verdict = Verdict::Ask(Addresses::Public);
    const ALLOW: Verdict = Verdict::Allow(Addresses::Public);
    const LOCAL: Verdict = Verdict::Allow(Addresses::Any);
    const DENIED: Verdict = Verdict::Deny(Reason::Denied);
    const NOT_ALLOWED: Verdict = Verdict::Deny(Reason::NotAllowed);
    const NOT_LOCAL: Verdict = Verdict::Deny(Reason::NotAllowedLocal);

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts
            .iter()
            .map(|text| text.parse().expect("a rule"))
            .collect()
    }

    fn set(allow: &[&str], deny: &[&str]) -> RuleSet {
        RuleSet {
            allow: rules(allow),
            deny: rules(deny),
            ..RuleSet::default()
        }
    }

    fn judge(set: &RuleSet, host: &str) -> Verdict {
        judge_all(&Policy::new(set.clone()), host)
    }

    fn judge_all(policy: &Policy, host: &str) -> Verdict {
        policy.judge(&Host::parse(host).expect("a host"), 443)
    }

    #[test]
    fn rules_decide_in_order() {
        let allowed = set(&["*.a.test", "b.test"], &["evil.a.test"]);
        for (host, verdict) in [
            ("x.a.test", ALLOW),
            ("b.test", ALLOW),
            ("evil.a.test", DENIED),
            ("EVIL.a.test.", DENIED),
            ("c.test", NOT_ALLOWED),
            ("8.8.8.8", NOT_ALLOWED),
            ("127.0.0.1", NOT_LOCAL),
            ("localhost", NOT_LOCAL),
            ("10.0.0.1", NOT_LOCAL),
        ] {
            assert_eq!(judge(&allowed, host), verdict, "{host}");
        }
        assert_eq!(judge(&set(&[], &[]), "a.test"), NOT_ALLOWED);
        assert_eq!(judge_all(&Policy::default(), "a.test"), NOT_ALLOWED);
        assert_eq!(judge(&set(&["a.test"], &["a.test"]), "a.test"), DENIED);
    }

    #[test]
    fn local_literals_must_be_named_exactly() {
        let locals = [
            "localhost",
            "127.0.0.1",
            "::1",
            "10.1.2.3",
            "100.64.1.1",
            "fd00::1",
        ];
        for host in locals {
            assert_eq!(judge(&set(&["*"], &[]), host), NOT_LOCAL, "{host}");
            assert_eq!(judge(&set(&[host], &[]), host), LOCAL, "{host}");
            assert_eq!(judge(&set(&[host], &[host]), host), DENIED, "{host}");
            let local = RuleSet {
                allow_local: true,
                ..set(&["*"], &[])
            };
            assert_eq!(judge(&local, host), LOCAL, "{host}");
            assert_eq!(
                judge(
                    &RuleSet {
                        allow: Vec::new(),
                        ..local
                    },
                    host
                ),
                NOT_ALLOWED
            );
        }
        // The address of an allowed name isn't allowed, and an address doesn't allow a name.
        assert_eq!(judge(&set(&["localhost"], &[]), "127.0.0.1"), NOT_LOCAL);
        assert_eq!(judge(&set(&["127.0.0.1"], &[]), "localhost"), NOT_LOCAL);
        assert_eq!(judge(&set(&["::ffff:10.0.0.1"], &[]), "10.0.0.1"), LOCAL);
        // Numbers that only a resolver reads as an address are names.
        assert_eq!(judge(&set(&["*"], &[]), "2130706433"), ALLOW);
    }

    #[test]
    fn resolved_addresses_are_judged() {
        let policy = Policy::new(set(&["*"], &["9.9.9.9", "1.0.0.0/8:443", "evil.test"]));
        let judge = |address: &str, port, allowed| {
            policy.judge_address(address.parse().expect("an address"), port, allowed)
        };
        let (public, any) = (Addresses::Public, Addresses::Any);
        assert_eq!(judge("8.8.8.8", 443, public), Ok(()));
        assert_eq!(
            judge("127.0.0.1", 443, public),
            Err(Reason::NotAllowedLocal)
        );
        assert_eq!(
            judge("::ffff:127.0.0.1", 443, public),
            Err(Reason::NotAllowedLocal)
        );
        assert_eq!(judge("127.0.0.1", 443, any), Ok(()));
        assert_eq!(judge("9.9.9.9", 443, public), Err(Reason::Denied));
        assert_eq!(judge("::ffff:9.9.9.9", 443, public), Err(Reason::Denied));
        assert_eq!(judge("1.2.3.4", 443, any), Err(Reason::Denied));
        assert_eq!(judge("1.2.3.4", 80, any), Ok(()));
    }

    #[test]
    fn reviewed_and_unlisted_targets_are_asked_about() {
        let asking = RuleSet {
            review: rules(&["review.test", "review.a.test"]),
            asks: true,
            ..set(&["**.a.test"], &["evil.test"])
        };
        for (host, verdict) in [
            ("a.test", ALLOW),
            ("review.a.test", ASK),
            ("review.test", ASK),
            ("other.test", ASK),
            ("evil.test", DENIED),
            ("127.0.0.1", NOT_LOCAL),
        ] {
            assert_eq!(judge(&asking, host), verdict, "{host}");
        }
        let silent = RuleSet {
            asks: false,
            ..asking
        };
        assert_eq!(judge(&silent, "review.a.test"), NOT_ALLOWED);
        assert_eq!(judge(&silent, "other.test"), NOT_ALLOWED);
    }

    #[test]
    fn narrowing_policy_can_not_be_lifted_by_the_decider() {
        let request = RuleSet {
            asks: true,
            allow_local: true,
            ..set(&["**.a.test", "10.0.0.1"], &[])
        };
        let operator = RuleSet {
            asks: true,
            ..set(&["**.a.test", "**.b.test"], &["evil.a.test"])
        };
        let both = Policy::new(request).narrowed(Policy::new(operator));
        for (host, verdict) in [
            ("a.test", ALLOW),
            ("evil.a.test", DENIED),
            ("b.test", ASK),
            ("c.test", NOT_ALLOWED),
            ("10.0.0.1", NOT_LOCAL),
        ] {
            assert_eq!(judge_all(&both, host), verdict, "{host}");
        }
    }

    #[test]
    fn limited_mode_allows_safe_methods_of_plain_http() {
        use NetworkProtocol::{Http, HttpsConnect, Socks5Tcp};
        let limited = Policy::new(RuleSet {
            mode: ProxyMode::Limited,
            ..RuleSet::default()
        });
        let full = Policy::new(RuleSet::default());
        for (protocol, method, port, limit) in [
            (Http, Some("GET"), 80, Ok(())),
            (Http, Some("HEAD"), 80, Ok(())),
            (Http, Some("OPTIONS"), 80, Ok(())),
            (Http, Some("POST"), 80, Err(Reason::MethodNotAllowed)),
            (Http, Some("TRACE"), 80, Err(Reason::MethodNotAllowed)),
            (Http, Some("get"), 80, Err(Reason::MethodNotAllowed)),
            (HttpsConnect, Some("CONNECT"), 80, Err(Reason::MitmRequired)),
            (Socks5Tcp, None, 443, Err(Reason::MitmRequired)),
            (Socks5Tcp, None, 80, Err(Reason::MethodNotAllowed)),
        ] {
            assert_eq!(limited.judge_method(protocol, method, port), limit);
            assert_eq!(full.judge_method(protocol, method, port), Ok(()));
        }
    }

    fn pattern() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("*".to_owned()),
            Just("localhost".to_owned()),
            Just("10.0.0.0/8".to_owned()),
            Just("127.0.0.1".to_owned()),
            "(\\*\\.|\\*\\*\\.)?[ab]\\.(test|dev)",
        ]
    }

    fn rule_set() -> impl Strategy<Value = RuleSet> {
        let some = || proptest::collection::vec(pattern(), 0..4);
        (some(), some(), some(), any::<[bool; 2]>()).prop_map(|(allow, deny, review, flags)| {
            let parsed = |texts: Vec<String>| {
                texts
                    .iter()
                    .map(|text| text.parse().expect("a rule"))
                    .collect()
            };
            RuleSet {
                allow: parsed(allow),
                deny: parsed(deny),
                review: parsed(review),
                mode: ProxyMode::Full,
                allow_local: flags[0],
                asks: flags[1],
            }
        })
    }

    fn host() -> impl Strategy<Value = Host> {
        let text =
            "([ab]\\.){1,3}(test|dev)|localhost|127\\.0\\.0\\.1|10\\.0\\.0\\.1|8\\.8\\.8\\.8";
        text.prop_map(|text| Host::parse(&text).expect("a host"))
    }

    proptest! {
        #[test]
        fn narrowing_never_allows_more(one in rule_set(), other in rule_set(), host in host()) {
            let (one, other) = (Policy::new(one), Policy::new(other));
            let both = one.clone().narrowed(other.clone()).judge(&host, 443);
            let rank = |verdict: &Verdict| match verdict {
                Verdict::Deny(_) => 0,
                Verdict::Ask(Addresses::Public) => 1,
                Verdict::Ask(Addresses::Any) => 2,
                Verdict::Allow(Addresses::Public) => 3,
                Verdict::Allow(Addresses::Any) => 4,
            };
            prop_assert!(rank(&both) <= rank(&one.judge(&host, 443)));
            let other = other.judge(&host, 443);
            prop_assert!(!matches!(other, Verdict::Ask(_)) || rank(&both) == 0);
            prop_assert!(rank(&both) <= rank(&other) || matches!(both, Verdict::Ask(_)));
        }

        #[test]
        fn denied_and_unnamed_local_targets_are_always_refused(set in rule_set(), host in host()) {
            let verdict = Policy::new(set.clone()).judge(&host, 443);
            if set.deny.iter().any(|rule| rule.matches(&host, 443)) {
                prop_assert_eq!(&verdict, &DENIED);
            }
            let is_named = set.allow.iter().any(|rule| rule.names(&host, 443));
            if host.is_local_literal() && !set.allow_local && !is_named {
                prop_assert!(matches!(verdict, Verdict::Deny(_)));
            }
            if matches!(verdict, Verdict::Allow(_)) {
                prop_assert!(set.allow.iter().any(|rule| rule.matches(&host, 443)));
            }
        }
    }
}
