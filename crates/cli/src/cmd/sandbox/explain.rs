//! `outpost sandbox --explain`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use outpost_engine::{
    netproxy::Rule as NetworkRule,
    sandbox::{
        Access, HostSupport, Level, Mounter, Network, Origin, PathState, Plan, Rule,
        Sandbox as HostSandbox, planning::ProcessDirectories,
    },
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Sandbox, policy::SandboxRequest};
use crate::{
    cmd::hidden,
    render::{
        out::{self, note},
        screen::{Cell, Screen, Style},
        visible::visible,
    },
};

/// Prints the plan and the enforcement layers. The exit code tells whether it can be enforced here.
pub(super) fn explain(
    args: &Sandbox,
    request: &SandboxRequest,
    level: Level,
) -> anyhow::Result<ExitCode> {
    let host = hidden::sandbox(level, None);
    // First, because the plan protects the bubblewrap that is found.
    let support = host.preflight();
    let plan = plan(request, &host)?;
    let (layers, unenforceable) = match (&plan, support) {
        (None, _) => (Vec::new(), None),
        (Some(_), Ok(_)) if request.network.is_some() && level == Level::Landlock => {
            (Vec::new(), Some(LANDLOCK_NETWORK.to_owned()))
        }
        (Some(plan), Ok(support)) => (layers(plan, &support, level), None),
        (Some(_), Err(reason)) => (Vec::new(), Some(reason.to_string())),
    };
    let explanation = Explanation {
        request,
        plan: plan.as_ref(),
        level,
        layers,
        unenforceable,
    };
    if args.json {
        out::json(&explanation.json())?;
    } else {
        out::raw_lines(explanation.lines(Screen::stdout()))?;
    }
    Ok(match explanation.unenforceable {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// Makes the plan; none for full access.
fn plan(request: &SandboxRequest, host: &HostSandbox) -> anyhow::Result<Option<Plan>> {
    let tmpdir = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let tmpdir = tmpdir.map(PathBuf::from);
    let context = ProcessDirectories {
        cwd: &request.cwd,
        tmpdir: tmpdir.as_deref(),
    };
    match &request.sandbox {
        None => Ok(None),
        Some(sandbox) => {
            let mut plan = host.plan(sandbox.policy(), &context)?;
            if request.network.is_some() {
                // The proxy takes the place of the network of the sandbox.
                plan.network = Network::Restricted;
            }
            Ok(Some(plan))
        }
    }
}

/// Says on stderr which of Outpost's own files the command can change, because Landlock cannot make
/// exceptions: they decide how later commands are sandboxed.
pub(super) fn note_writable_own_files(request: &SandboxRequest) {
    // If it can't be planned, the command does not start.
    let Ok(Some(plan)) = plan(request, &hidden::sandbox(Level::Landlock, None)) else {
        return;
    };
    for path in writable_own_files(&plan) {
        note(&format!(
            "the command can write {}, which decides how later commands are sandboxed: \
             sandbox.level is \"landlock\"",
            path.display()
        ));
    }
}

fn writable_own_files(plan: &Plan) -> impl Iterator<Item = &Path> {
    let own = plan.rules.iter().filter(|rule| rule.origin == Origin::Own);
    let writable = own.filter(|rule| {
        let around = rule.path.parent().map(|parent| plan.access(parent));
        around == Some(Access::Write)
    });
    writable.map(|rule| &*rule.path)
}

/// The enforcement layers, from the outside in.
fn layers(plan: &Plan, support: &HostSupport, level: Level) -> Vec<EnforcementLayer> {
    let layer = |name, what: &str| EnforcementLayer {
        name,
        what: what.to_owned(),
    };
    let (spaces, sockets) = match (plan.network, level) {
        (Network::Restricted, Level::Namespaces) => {
            let sockets = if support.unix_sockets {
                "unix sockets only among its own processes, "
            } else {
                "no unix sockets, "
            };
            ("user, mount, PID, IPC and network", sockets)
        }
        (Network::Restricted, Level::Landlock) => ("", "no sockets, "),
        (Network::Enabled, _) => ("user, mount, PID and IPC", ""),
    };
    let mut layers = Vec::new();
    if level == Level::Namespaces {
        let what = format!("{spaces}, by {}", support.version);
        layers.push(layer("namespaces", &what));
        let mounter = match support.mounter {
            Mounter::Helper => "the outpost helper",
            Mounter::Bubblewrap => "bubblewrap, because only it may mount on this host",
        };
        layers.push(layer("mounts", &format!("the listed paths, by {mounter}")));
    }
    let paths = match level {
        Level::Namespaces => "the same paths again",
        Level::Landlock => "the paths",
    };
    layers.push(match support.landlock {
        0 => layer("landlock", "none in this kernel"),
        version => layer("landlock", &format!("{paths}, by ABI {version}")),
    });
    let calls = format!(
        "{sockets}no io_uring, no foreign architectures, no input into other terminals (TIOCSTI)"
    );
    layers.push(layer("seccomp", &calls));
    layers.push(layer("privileges", "none, and none can be gained"));
    layers
}

/// Reason why a network policy can't be enforced.
const LANDLOCK_NETWORK: &str = "sandbox.level is \"landlock\", which can't restrict the network to what a policy allows; set it to \"namespaces\"";

/// Warning about the network.
const NETWORK: &str = "With network access, it can reach every port and unix socket of this host. A server that runs programs for its clients, such as this one, is a way out of the sandbox.";

/// A sandbox plan with its enforcement.
#[derive(Debug)]
struct Explanation<'a> {
    request: &'a SandboxRequest,
    /// None for full access.
    plan: Option<&'a Plan>,
    level: Level,
    layers: Vec<EnforcementLayer>,
    /// Why it can't be enforced here, if it can't.
    unenforceable: Option<String>,
}

/// One enforcement layer.
#[derive(Debug, Serialize)]
struct EnforcementLayer {
    name: &'static str,
    /// Its effect, or the reason why it is missing.
    what: String,
}

impl Explanation<'_> {
    /// Formats for people.
    fn lines(&self, screen: Screen) -> Vec<String> {
        let network = match (self.plan.map(|plan| plan.network), self.level) {
            _ if self.request.network.is_some() => "what its policy allows, through a proxy",
            (Some(Network::Restricted), Level::Namespaces) => "none, except its own loopback",
            (Some(Network::Restricted), Level::Landlock) => "none",
            (Some(Network::Enabled) | None, _) => "the host's",
        };
        let mut lines = vec![
            labelled("profile", &self.request.profile, screen),
            labelled("directory", &shown(&self.request.cwd), screen),
            labelled("network", network, screen),
        ];
        if let Some(rules) = &self.request.network {
            let row = |name: &'static str| {
                move |rule: &NetworkRule| labelled(name, &rule.to_string(), screen)
            };
            lines.extend(rules.allow.iter().map(row("  allow")));
            lines.extend(rules.deny.iter().map(row("  deny")));
            if rules.allow_local {
                lines.push(labelled("  local", "private addresses as others", screen));
            }
        }
        lines.push(String::new());
        let Some(plan) = self.plan else {
            lines.push("Not sandboxed: it has all of your permissions.".to_owned());
            return lines;
        };
        let rows: Vec<_> = plan
            .rules
            .iter()
            .map(|rule| row(rule, why(rule, plan, self.level)))
            .collect();
        let table = screen.table(["ACCESS", "PATH", "WHY"], &rows);
        lines.extend(table.iter().map(|line| line.trim_end().to_owned()));
        if !plan.rules.iter().any(|rule| rule.path == *"/") {
            lines.push("Paths that are not listed do not exist inside.".to_owned());
        }
        let warnings = plan.warnings.iter();
        lines.extend(warnings.map(|warning| format!("note: {}", visible(&warning.to_string()))));
        lines.push(String::new());
        let layers = self.layers.iter();
        lines.extend(layers.map(|layer| labelled(layer.name, &layer.what, screen)));
        if plan.network == Network::Enabled {
            lines.push(screen.apply(Style::Bad, NETWORK));
        }
        if self.level == Level::Landlock {
            let message = "sandbox.level is \"landlock\", which is weaker: read-only paths below writable ones can be written.";
            lines.push(screen.apply(Style::Bad, message));
        }
        if let Some(reason) = &self.unenforceable {
            let message = format!("Cannot be enforced on this host: {reason}");
            lines.push(screen.apply(Style::Bad, &message));
        }
        lines
    }

    /// Formats for programs.
    fn json(&self) -> Value {
        let network = self.plan.map(|plan| plan.network);
        let (rules, links, warnings) = match self.plan {
            None => Default::default(),
            Some(plan) => {
                let links = plan.links.iter().map(|link| {
                    let target = link.target.to_string_lossy();
                    json!({"path": link.path.to_string_lossy(), "target": target})
                });
                let warnings = plan.warnings.iter().map(ToString::to_string);
                let rules: Vec<_> = plan.rules.iter().map(rule_json).collect();
                (
                    rules,
                    links.collect::<Vec<_>>(),
                    warnings.collect::<Vec<_>>(),
                )
            }
        };
        let policy = self.request.network.as_ref().map(|rules| {
            let texts = |rules: &[NetworkRule]| -> Vec<_> {
                rules.iter().map(NetworkRule::to_string).collect()
            };
            json!({
                "allow": texts(&rules.allow), "deny": texts(&rules.deny),
                "allowLocalBinding": rules.allow_local,
            })
        });
        json!({
            "profile": self.request.profile,
            "cwd": self.request.cwd.to_string_lossy(),
            "confined": self.plan.is_some(),
            "network": match policy {
                Some(_) => json!("managed"),
                None => json!(network),
            },
            "networkPolicy": policy,
            "networkNote": (network == Some(Network::Enabled)).then_some(NETWORK),
            "rules": rules,
            "links": links,
            "warnings": warnings,
            "level": self.level,
            "layers": self.layers,
            "refusal": self.unenforceable,
        })
    }
}

fn labelled(name: &str, what: &str, screen: Screen) -> String {
    format!(
        "{}  {}",
        screen.apply(Style::Bold, &format!("{name:10}")),
        visible(what)
    )
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The origin of a rule, and whether it is enforced. Landlock grants a directory with everything in
/// it.
fn why(rule: &Rule, plan: &Plan, level: Level) -> &'static str {
    let around = rule.path.parent().map(|parent| plan.access(parent));
    if level == Level::Landlock && around == Some(Access::Write) {
        match (rule.access, rule.presence, rule.origin) {
            (Access::Read, PathState::Absent, _) => return "not enforced: can be created",
            (Access::Read, ..) => return "not enforced: can be written",
            (_, _, Origin::Pinned) => return "not enforced: can be moved",
            (Access::Deny, _, Origin::Own) => return "not enforced: can be read and written",
            _ => {}
        }
    }
    match (rule.presence, rule.origin) {
        (PathState::Absent, Origin::Protected) => "protected: can't be created",
        (PathState::Absent, _) => "can't be created",
        (_, Origin::Protected) => "protected",
        (_, Origin::Minimal) => "minimal",
        (_, Origin::Glob) => "matches a pattern",
        (_, Origin::Pinned) => "can't be moved",
        (_, Origin::Own) => "outpost's own",
        (_, Origin::Entry) => "",
    }
}

fn row(rule: &Rule, why: &'static str) -> [Cell; 3] {
    let style = match rule.access {
        Access::Read => Style::Quiet,
        Access::Write => Style::Good,
        Access::Deny => Style::Bad,
    };
    [
        Cell::styled(rule.access.as_str(), style),
        Cell::plain(shown(&rule.path)),
        Cell::plain(why),
    ]
}

fn rule_json(rule: &Rule) -> Value {
    let presence = match rule.presence {
        PathState::Directory => "directory",
        PathState::File => "file",
        PathState::Absent => "absent",
    };
    let why = match rule.origin {
        Origin::Entry => "entry",
        Origin::Protected => "protected",
        Origin::Minimal => "minimal",
        Origin::Glob => "glob",
        Origin::Pinned => "pinned",
        Origin::Own => "own",
    };
    let path = rule.path.to_string_lossy();
    json!({"path": path, "access": rule.access, "presence": presence, "why": why})
}

#[cfg(test)]
mod tests {
    use outpost_engine::netproxy::RuleSet;

    use super::*;

    fn plan() -> Plan {
        let rule = |path: &str, access, presence, origin| Rule {
            path: path.into(),
            access,
            presence,
            identity: None,
            origin,
        };
        Plan {
            rules: vec![
                rule("/usr", Access::Read, PathState::Directory, Origin::Minimal),
                rule("/ws", Access::Write, PathState::Directory, Origin::Entry),
                rule(
                    "/ws/.codex",
                    Access::Read,
                    PathState::Absent,
                    Origin::Protected,
                ),
                rule(
                    "/ws/.git",
                    Access::Read,
                    PathState::Directory,
                    Origin::Protected,
                ),
                rule(
                    "/ws/a\u{1b}.pem",
                    Access::Deny,
                    PathState::File,
                    Origin::Glob,
                ),
            ],
            links: Vec::new(),
            network: Network::Restricted,
            listen: Vec::new(),
            cwd: "/ws".into(),
            warnings: Vec::new(),
        }
    }

    fn request() -> SandboxRequest {
        SandboxRequest {
            profile: ":workspace".to_owned(),
            cwd: "/ws".into(),
            sandbox: None,
            network: None,
        }
    }

    #[test]
    fn explanation_is_aligned_and_escaped() {
        let plan = plan();
        let explanation = Explanation {
            request: &request(),
            plan: Some(&plan),
            level: Level::Namespaces,
            layers: vec![EnforcementLayer {
                name: "namespaces",
                what: "user and mount".to_owned(),
            }],
            unenforceable: None,
        };
        let lines = explanation.lines(Screen::FILE);
        insta::assert_snapshot!(lines.join("\n"), @r"
        profile     :workspace
        directory   /ws
        network     none, except its own loopback

        ACCESS  PATH             WHY
        read    /usr             minimal
        write   /ws
        read    /ws/.codex       protected: can't be created
        read    /ws/.git         protected
        deny    /ws/a\u{1b}.pem  matches a pattern
        Paths that are not listed do not exist inside.

        namespaces  user and mount
        ");
        let rules = &explanation.json()["rules"];
        assert_eq!(
            rules[2],
            json!({"path": "/ws/.codex", "access": "read", "presence": "absent", "why": "protected"})
        );
    }

    #[test]
    fn network_policy_is_listed() {
        let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let request = SandboxRequest {
            network: Some(RuleSet {
                allow: parsed(&["*.a.test:443", "10.0.0.0/8"]),
                deny: parsed(&["b.a.test"]),
                ..RuleSet::default()
            }),
            ..request()
        };
        let explanation = Explanation {
            request: &request,
            plan: Some(&plan()),
            level: Level::Namespaces,
            layers: Vec::new(),
            unenforceable: None,
        };
        let lines = explanation.lines(Screen::FILE);
        insta::assert_snapshot!(lines[2..6].join("\n"), @r"
        network     what its policy allows, through a proxy
          allow     *.a.test:443
          allow     10.0.0.0/8
          deny      b.a.test
        ");
        let json = explanation.json();
        assert_eq!(json["network"], "managed");
        assert_eq!(json["networkPolicy"]["deny"], json!(["b.a.test"]));
    }

    #[test]
    fn missing_enforcement_and_full_access_are_reported() {
        let plan = plan();
        let mut explanation = Explanation {
            request: &request(),
            plan: Some(&plan),
            level: Level::Landlock,
            layers: Vec::new(),
            unenforceable: Some("bwrap is missing".to_owned()),
        };
        let lines = explanation.lines(Screen::FILE);
        for (path, kept) in [
            ("/ws/.codex", "not enforced: can be created"),
            ("/ws/.git", "not enforced: can be written"),
        ] {
            let mut about = lines.iter().filter(|line| line.contains(path));
            assert!(about.all(|line| line.ends_with(kept)), "{lines:?}");
        }
        let last = lines[lines.len() - 2..].join("\n");
        assert_eq!(
            last,
            "sandbox.level is \"landlock\", which is weaker: read-only paths below writable ones can \
             be written.\n\
             Cannot be enforced on this host: bwrap is missing"
        );
        assert!(!lines.iter().any(|line| line == NETWORK), "{lines:?}");
        let mut connected = plan.clone();
        connected.network = Network::Enabled;
        explanation.plan = Some(&connected);
        let lines = explanation.lines(Screen::FILE);
        assert!(lines.iter().any(|line| line == NETWORK), "{lines:?}");
        explanation.plan = None;
        let lines = explanation.lines(Screen::FILE);
        assert!(lines[4].starts_with("Not sandboxed"), "{lines:?}");
        assert_eq!(explanation.json()["confined"], false);
    }
}
