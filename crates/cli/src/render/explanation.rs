//! Output of `outpost sandbox --explain`.

use std::path::Path;

use outpost_engine::sandbox::{Access, Level, Network, Origin, Plan, Presence, Rule};
use serde_json::{Value, json};

use super::{
    command_line::visible,
    style::{Style, Styler},
    table::{self, Cell},
};

/// Warning about the network.
pub(crate) const NETWORK: &str = "With network access, it can reach every port and unix socket of this host. A server that runs programs for its clients, such as this one, is a way out of the sandbox.";

/// A sandbox plan with its enforcement.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    pub(crate) profile: &'a str,
    pub(crate) cwd: &'a Path,
    /// None for full access.
    pub(crate) plan: Option<&'a Plan>,
    pub(crate) level: Level,
    pub(crate) layers: Vec<Layer>,
    /// Why it can't be enforced here, if it can't.
    pub(crate) unenforceable: Option<String>,
}

/// One enforcement layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// Its effect, or the reason why it is missing.
    pub(crate) what: String,
}

impl Explanation<'_> {
    /// Formats for people.
    pub(crate) fn lines(&self, width: Option<usize>, styler: Styler) -> Vec<String> {
        let network = match (self.plan.map(|plan| plan.network), self.level) {
            (Some(Network::Restricted), Level::Namespaces) => "none, except its own loopback",
            (Some(Network::Restricted), Level::Landlock) => "none",
            (Some(Network::Enabled) | None, _) => "the host's",
        };
        let mut lines = vec![
            labelled("profile", self.profile, styler),
            labelled("directory", &shown(self.cwd), styler),
            labelled("network", network, styler),
            String::new(),
        ];
        let Some(plan) = self.plan else {
            lines.push("Not confined: it has all of your permissions.".to_owned());
            return lines;
        };
        let rows: Vec<_> = plan
            .rules
            .iter()
            .map(|rule| row(rule, why(rule, plan, self.level)))
            .collect();
        let head = ["ACCESS", "PATH", "WHY"];
        let table = table::lines(head, &rows, width, styler);
        lines.extend(table.iter().map(|line| line.trim_end().to_owned()));
        if !plan.rules.iter().any(|rule| rule.path == *"/") {
            lines.push("Paths that are not listed do not exist inside.".to_owned());
        }
        let warnings = plan.warnings.iter();
        lines.extend(warnings.map(|warning| format!("note: {}", visible(&warning.to_string()))));
        lines.push(String::new());
        let layers = self.layers.iter();
        lines.extend(layers.map(|layer| labelled(layer.name, &layer.what, styler)));
        if plan.network == Network::Enabled {
            lines.push(styler.apply(Style::Bad, NETWORK));
        }
        if self.level == Level::Landlock {
            let message = "sandbox.level is \"landlock\", which is weaker: read-only paths below writable ones can be written.";
            lines.push(styler.apply(Style::Bad, message));
        }
        if let Some(reason) = &self.unenforceable {
            let message = format!("Cannot be enforced on this host: {reason}");
            lines.push(styler.apply(Style::Bad, &message));
        }
        lines
    }

    /// Formats for programs.
    pub(crate) fn json(&self) -> Value {
        let network = self.plan.map(|plan| match plan.network {
            Network::Restricted => "restricted",
            Network::Enabled => "enabled",
        });
        let layers = self.layers.iter();
        let layers: Vec<_> = layers
            .map(|layer| json!({"name": layer.name, "what": layer.what}))
            .collect();
        json!({
            "profile": self.profile,
            "cwd": self.cwd.to_string_lossy(),
            "confined": self.plan.is_some(),
            "network": network,
            "networkNote": (network == Some("enabled")).then_some(NETWORK),
            "rules": self.each_in_plan(|plan| plan.rules.iter().map(rule_json).collect()),
            "links": self.each_in_plan(|plan| plan.links.iter().map(|link| json!({
                "path": link.path.to_string_lossy(), "target": link.target.to_string_lossy(),
            })).collect()),
            "warnings": self.each_in_plan(|plan| {
                plan.warnings.iter().map(|warning| warning.to_string().into()).collect()
            }),
            "level": level_name(self.level),
            "layers": layers,
            "refusal": self.unenforceable,
        })
    }

    fn each_in_plan(&self, part: impl Fn(&Plan) -> Vec<Value>) -> Vec<Value> {
        self.plan.map(part).unwrap_or_default()
    }
}

/// A level as written in the configuration.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Namespaces => "namespaces",
        Level::Landlock => "landlock",
    }
}

fn labelled(name: &str, what: &str, styler: Styler) -> String {
    format!(
        "{}  {what}",
        styler.apply(Style::Bold, &format!("{name:10}"))
    )
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// The origin of a rule, and whether it is enforced. Landlock grants a directory with everything in
/// it.
fn why(rule: &Rule, plan: &Plan, level: Level) -> &'static str {
    let around = rule.path.parent().map(|parent| plan.access(parent));
    if level == Level::Landlock && around == Some(Access::Write) {
        match (rule.access, rule.presence, rule.origin) {
            (Access::Read, Presence::Absent, _) => return "not enforced: can be created",
            (Access::Read, ..) => return "not enforced: can be written",
            (_, _, Origin::Pinned) => return "not enforced: can be moved",
            _ => {}
        }
    }
    match (rule.presence, rule.origin) {
        (Presence::Absent, Origin::Protected) => "protected: can't be created",
        (Presence::Absent, _) => "can't be created",
        (_, Origin::Protected) => "protected",
        (_, Origin::Minimal) => "minimal",
        (_, Origin::Glob) => "matches a pattern",
        (_, Origin::Pinned) => "can't be moved",
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
        Presence::Directory => "directory",
        Presence::File => "file",
        Presence::Absent => "absent",
    };
    let why = match rule.origin {
        Origin::Entry => "entry",
        Origin::Protected => "protected",
        Origin::Minimal => "minimal",
        Origin::Glob => "glob",
        Origin::Pinned => "pinned",
    };
    json!({
        "path": rule.path.to_string_lossy(),
        "access": rule.access.as_str(),
        "presence": presence,
        "why": why,
    })
}

#[cfg(test)]
mod tests {
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
                rule("/usr", Access::Read, Presence::Directory, Origin::Minimal),
                rule("/ws", Access::Write, Presence::Directory, Origin::Entry),
                rule(
                    "/ws/.codex",
                    Access::Read,
                    Presence::Absent,
                    Origin::Protected,
                ),
                rule(
                    "/ws/.git",
                    Access::Read,
                    Presence::Directory,
                    Origin::Protected,
                ),
                rule(
                    "/ws/a\u{1b}.pem",
                    Access::Deny,
                    Presence::File,
                    Origin::Glob,
                ),
            ],
            links: Vec::new(),
            network: Network::Restricted,
            cwd: "/ws".into(),
            warnings: Vec::new(),
        }
    }

    fn plain() -> Styler {
        Styler::on(&std::fs::File::open("/dev/null").unwrap())
    }

    #[test]
    fn explanation_is_aligned_and_escaped() {
        let plan = plan();
        let explanation = Explanation {
            profile: ":workspace",
            cwd: Path::new("/ws"),
            plan: Some(&plan),
            level: Level::Namespaces,
            layers: vec![Layer {
                name: "namespaces",
                what: "user and mount".to_owned(),
            }],
            unenforceable: None,
        };
        let lines = explanation.lines(None, plain());
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
    fn missing_enforcement_and_full_access_are_reported() {
        let plan = plan();
        let mut explanation = Explanation {
            profile: ":workspace",
            cwd: Path::new("/ws"),
            plan: Some(&plan),
            level: Level::Landlock,
            layers: Vec::new(),
            unenforceable: Some("bwrap is missing".to_owned()),
        };
        let lines = explanation.lines(None, plain());
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
        let lines = explanation.lines(None, plain());
        assert!(lines.iter().any(|line| line == NETWORK), "{lines:?}");
        explanation.plan = None;
        let lines = explanation.lines(None, plain());
        assert!(lines[4].starts_with("Not confined"), "{lines:?}");
        assert_eq!(explanation.json()["confined"], false);
    }
}
