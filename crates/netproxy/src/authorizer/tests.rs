//! Tests decisions about hosts: resolved addresses, the answer of a decider, the mode of the proxy.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use outpost_types::ProxyMode;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::*;
use crate::dialer::DialFuture;
use crate::{Activity, RuleSet};

/// Resolves names from a table. `slow.test` never resolves.
struct FakeDialer {
    lookups: AtomicUsize,
}

impl Dial for FakeDialer {
    fn resolve<'a>(&'a self, name: &'a str) -> DialFuture<'a, Vec<IpAddr>> {
        let count = self.lookups.fetch_add(1, Ordering::Relaxed);
        let addresses: &[&str] = match name {
            "public.test" | "unlisted.test" => &["8.8.8.8", "2606:4700::1"],
            "private.test" | "2130706433" => &["127.0.0.1"],
            "mixed.test" => &["8.8.8.8", "10.0.0.1"],
            "mapped.test" => &["::ffff:10.0.0.1"],
            "denied.test" => &["9.9.9.9"],
            // Rebinding: another address every time.
            "rebinding.test" if count == 0 => &["8.8.8.8"],
            "rebinding.test" => &["127.0.0.1"],
            _ => &[],
        };
        let is_slow = name == "slow.test";
        Box::pin(async move {
            if is_slow {
                std::future::pending::<()>().await;
            }
            let parsed = addresses.iter().map(|one| one.parse());
            parsed.collect::<Result<_, _>>().map_err(io::Error::other)
        })
    }

    fn connect(&self, _: SocketAddr) -> DialFuture<'_, TcpStream> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}

/// Answers with what its name says.
struct FakeDecider(Decision);

impl Decider for FakeDecider {
    fn decide(&self, target: NetworkTarget) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>> {
        assert_eq!(target.port, 443);
        Box::pin(async {
            if self.0.is_none() {
                std::future::pending::<()>().await;
            }
            self.0.clone()
        })
    }
}

struct Fixture {
    authorizer: Authorizer,
    dialer: Arc<FakeDialer>,
    events: mpsc::Receiver<NetworkDecision>,
}

impl Fixture {
    fn new(rules: RuleSet, decider: Option<Decision>) -> Self {
        let (sender, events) = mpsc::channel(64);
        let dialer = Arc::new(FakeDialer {
            lookups: AtomicUsize::new(0),
        });
        let log = DecisionLog {
            events: sender,
            activity: Arc::<Activity>::default(),
        };
        let decider = decider.map(|answer| {
            let decider: Arc<dyn Decider> = Arc::new(FakeDecider(answer));
            (decider, Duration::from_secs(6))
        });
        let policy = Policy::new(RuleSet {
            asks: decider.is_some(),
            ..rules
        });
        let authorizer = Authorizer::new(policy, decider, dialer.clone(), log);
        Self {
            authorizer,
            dialer,
            events,
        }
    }

    /// Returns the addresses or the reason of the refusal, and the decisions.
    async fn authorize(&mut self, host: &str) -> (Result<Vec<String>, String>, Vec<String>) {
        self.authorize_by(host, NetworkProtocol::HttpsConnect, None)
            .await
    }

    async fn authorize_by(
        &mut self,
        host: &str,
        protocol: NetworkProtocol,
        method: Option<&str>,
    ) -> (Result<Vec<String>, String>, Vec<String>) {
        let request = Request {
            protocol,
            host: Host::parse(host).expect("a host"),
            port: 443,
            method: method.map(str::to_owned),
            client: None,
        };
        let outcome = match self.authorizer.authorize(&request).await {
            Ok(authorized) => Ok(authorized
                .addresses
                .iter()
                .map(ToString::to_string)
                .collect()),
            Err(refusal) => Err(refusal.reason.as_str().to_owned()),
        };
        let mut decisions = Vec::new();
        while let Ok(decision) = self.events.try_recv() {
            assert_eq!(decision.host, host);
            let json = serde_json::to_value(&decision).expect("JSON");
            let texts = ["scope", "decision", "source", "reason"].map(|name| json[name].as_str());
            let texts: Vec<_> = texts.into_iter().flatten().collect();
            let overridden = if decision.policy_override {
                " override"
            } else {
                ""
            };
            decisions.push(texts.join(" ") + overridden);
        }
        (outcome, decisions)
    }
}

fn rules(allow: &[&str], deny: &[&str]) -> RuleSet {
    let parsed = |texts: &[&str]| {
        let rules = texts.iter().map(|text| text.parse().expect("a rule"));
        rules.collect::<Vec<_>>()
    };
    RuleSet {
        allow: parsed(allow),
        deny: parsed(deny),
        ..RuleSet::default()
    }
}

#[tokio::test(start_paused = true)]
async fn every_address_of_a_name_is_checked() {
    let mut fixture = Fixture::new(rules(&["*"], &["9.9.9.9"]), None);
    let (outcome, decisions) = fixture.authorize("public.test").await;
    assert_eq!(
        outcome.expect("allowed"),
        ["8.8.8.8:443", "[2606:4700::1]:443"]
    );
    assert_eq!(decisions, ["domain allow baseline_policy allow"]);
    for (host, reason) in [
        ("private.test", "not_allowed_local"),
        ("mixed.test", "not_allowed_local"),
        ("mapped.test", "not_allowed_local"),
        ("2130706433", "not_allowed_local"),
        ("unknown.test", "not_allowed_local"),
        ("slow.test", "not_allowed_local"),
        ("denied.test", "denied"),
    ] {
        let (outcome, decisions) = fixture.authorize(host).await;
        assert_eq!(outcome, Err(reason.to_owned()), "{host}");
        assert_eq!(decisions, [format!("domain deny baseline_policy {reason}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn name_that_changes_its_address_is_checked_again() {
    let mut fixture = Fixture::new(rules(&["rebinding.test"], &[]), None);
    let (first, _) = fixture.authorize("rebinding.test").await;
    assert_eq!(first.expect("allowed"), ["8.8.8.8:443"]);
    let (second, _) = fixture.authorize("rebinding.test").await;
    assert_eq!(second, Err("not_allowed_local".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn refused_name_is_not_resolved() {
    let mut fixture = Fixture::new(rules(&["*.a.test"], &["evil.a.test"]), None);
    for (host, reason) in [("secret.test", "not_allowed"), ("evil.a.test", "denied")] {
        let (outcome, _) = fixture.authorize(host).await;
        assert_eq!(outcome, Err(reason.to_owned()));
    }
    assert_eq!(fixture.dialer.lookups.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn decider_allows_public_targets_only() {
    let mut fixture = Fixture::new(
        rules(&["public.test"], &["evil.test"]),
        Some(Some(NetworkAnswer::Allow)),
    );
    let (outcome, decisions) = fixture.authorize("unlisted.test").await;
    assert!(outcome.is_ok());
    assert_eq!(decisions, ["domain allow decider not_allowed override"]);
    let (_, decisions) = fixture.authorize("public.test").await;
    assert_eq!(decisions, ["domain allow baseline_policy allow"]);
    for (host, decision) in [
        (
            "private.test",
            "domain deny baseline_policy not_allowed_local",
        ),
        ("10.0.0.1", "domain deny baseline_policy not_allowed_local"),
        ("evil.test", "domain deny baseline_policy denied"),
    ] {
        let (outcome, decisions) = fixture.authorize(host).await;
        assert!(outcome.is_err(), "{host}");
        assert_eq!(decisions, [decision]);
    }
}

#[tokio::test(start_paused = true)]
async fn other_answers_refuse() {
    let deny = |reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        Some(NetworkAnswer::Deny { reason })
    };
    let ask = Some(NetworkAnswer::Ask {
        reason: Some("later".to_owned()),
    });
    for (answer, decision) in [
        (None, "domain deny decider not_allowed"),
        (deny(None), "domain deny decider not_allowed"),
        (deny(Some("")), "domain deny decider not_allowed"),
        (deny(Some("no way")), "domain deny decider no way"),
        (
            deny(Some(&"x".repeat(1025))),
            "domain deny decider not_allowed",
        ),
        (ask, "domain ask decider later"),
    ] {
        let mut fixture = Fixture::new(rules(&[], &[]), Some(answer));
        let (outcome, decisions) = fixture.authorize("unlisted.test").await;
        assert!(outcome.is_err());
        assert_eq!(decisions, [decision]);
    }
}

#[tokio::test(start_paused = true)]
async fn mode_refuses_in_a_second_decision_that_nobody_lifts() {
    let limited = RuleSet {
        mode: ProxyMode::Limited,
        ..rules(&["public.test"], &[])
    };
    let mut fixture = Fixture::new(limited, Some(Some(NetworkAnswer::Allow)));
    let (outcome, decisions) = fixture.authorize("public.test").await;
    assert_eq!(outcome, Err("mitm_required".to_owned()));
    let refused = "non_domain deny mode_guard mitm_required";
    assert_eq!(decisions, ["domain allow baseline_policy allow", refused]);
    let (outcome, decisions) = fixture.authorize("unlisted.test").await;
    assert!(outcome.is_err());
    assert_eq!(
        decisions,
        ["domain allow decider not_allowed override", refused]
    );
    let get = fixture.authorize_by("public.test", NetworkProtocol::Http, Some("GET"));
    assert!(get.await.0.is_ok());
    let post = fixture.authorize_by("public.test", NetworkProtocol::Http, Some("POST"));
    let (outcome, decisions) = post.await;
    assert_eq!(outcome, Err("method_not_allowed".to_owned()));
    assert_eq!(
        decisions[1],
        "non_domain deny mode_guard method_not_allowed"
    );
}

#[tokio::test]
async fn long_methods_are_cut_in_decisions() {
    let mut fixture = Fixture::new(rules(&[], &[]), None);
    let long = "M".repeat(10_000);
    let outcome = fixture.authorize_by("a.test", NetworkProtocol::Http, Some(&long));
    assert!(outcome.await.0.is_err());
    let (records, _) = fixture.authorizer.log.activity.records();
    assert_eq!(records[0].decision.method.as_deref(), Some(&long[..64]));
}
