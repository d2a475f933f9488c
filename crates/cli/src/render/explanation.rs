//! What a process would be confined to, as `outpost sandbox --explain` shows it.

use std::path::Path;

use outpost_engine::sandbox::{Access, Level, Network, Plan, Presence, Rule, Why};
use serde_json::{Value, json};

use super::{
    command_line::visible,
    paint::{Paint, Tone},
    table::{self, Cell},
};

/// What a network means for whoever is confined otherwise.
pub(crate) const NETWORK: &str = "With a network it reaches whatever listens on this host, by port or by a socket's path: a server that runs programs for whoever asks, as this one does, is a way out.";

/// What is to be said.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    pub(crate) profile: &'a str,
    pub(crate) cwd: &'a Path,
    /// None for full access.
    pub(crate) plan: Option<&'a Plan>,
    pub(crate) level: Level,
    pub(crate) layers: Vec<Layer>,
    /// Why it can't be enforced, if it can't.
    pub(crate) refusal: Option<String>,
}

/// One of the walls around a process.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// What it sees to, or why it isn't there.
    pub(crate) what: String,
}

impl Explanation<'_> {
    /// For people.
    pub(crate) fn lines(&self, width: Option<usize>, paint: Paint) -> Vec<String> {
        let network = match (self.plan.map(|plan| plan.network), self.level) {
            (Some(Network::Restricted), Level::Namespaces) => "none but a loopback of its own",
            (Some(Network::Restricted), Level::Landlock) => "none",
            (Some(Network::Enabled) | None, _) => "that of the host",
        };
        let mut lines = vec![
            about("profile", self.profile, paint),
            about("directory", &shown(self.cwd), paint),
            about("network", network, paint),
            String::new(),
        ];
        let Some(plan) = self.plan else {
            lines.push("Not confined: it may do all that you may.".to_owned());
            return lines;
        };
        let rows: Vec<_> = plan
            .rules
            .iter()
            .map(|rule| row(rule, why(rule, plan, self.level)))
            .collect();
        let head = ["ACCESS", "PATH", "WHY"];
        let table = table::lines(head, &rows, width, paint);
        lines.extend(table.iter().map(|line| line.trim_end().to_owned()));
        if !plan.rules.iter().any(|rule| rule.path == *"/") {
            lines.push("What isn't listed doesn't exist inside.".to_owned());
        }
        let warnings = plan.warnings.iter();
        lines.extend(warnings.map(|warning| format!("note: {}", visible(&warning.to_string()))));
        lines.push(String::new());
        let layers = self.layers.iter();
        lines.extend(layers.map(|layer| about(layer.name, &layer.what, paint)));
        if plan.network == Network::Enabled {
            lines.push(paint.dye(Tone::Bad, NETWORK));
        }
        if self.level == Level::Landlock {
            let words = "sandbox.level is \"landlock\", the weaker promise: what is read-only within what may be written can be written.";
            lines.push(paint.dye(Tone::Bad, words));
        }
        if let Some(reason) = &self.refusal {
            let words = format!("It can't be enforced here: {reason}");
            lines.push(paint.dye(Tone::Bad, &words));
        }
        lines
    }

    /// For programs.
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
            "rules": self.each(|plan| plan.rules.iter().map(of_rule).collect()),
            "links": self.each(|plan| plan.links.iter().map(|link| json!({
                "path": link.path.to_string_lossy(), "target": link.target.to_string_lossy(),
            })).collect()),
            "warnings": self.each(|plan| {
                plan.warnings.iter().map(|warning| warning.to_string().into()).collect()
            }),
            "level": level_word(self.level),
            "layers": layers,
            "refusal": self.refusal,
        })
    }

    fn each(&self, part: impl Fn(&Plan) -> Vec<Value>) -> Vec<Value> {
        self.plan.map(part).unwrap_or_default()
    }
}

/// A level as a setting has it.
pub(crate) fn level_word(level: Level) -> &'static str {
    match level {
        Level::Namespaces => "namespaces",
        Level::Landlock => "landlock",
    }
}

fn about(name: &str, what: &str, paint: Paint) -> String {
    format!("{}  {what}", paint.dye(Tone::Bold, &format!("{name:10}")))
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// Where a rule comes from, and what is kept of it. Landlock grants a directory with all that is in
/// it.
fn why(rule: &Rule, plan: &Plan, level: Level) -> &'static str {
    let around = rule.path.parent().map(|parent| plan.access(parent));
    if level == Level::Landlock && around == Some(Access::Write) {
        match (rule.access, rule.presence, rule.why) {
            (Access::Read, Presence::Absent, _) => return "not kept: can be created",
            (Access::Read, ..) => return "not kept: can be written",
            (_, _, Why::Pinned) => return "not kept: can be moved",
            _ => {}
        }
    }
    match (rule.presence, rule.why) {
        (Presence::Absent, Why::Protected) => "protected: can't be created",
        (Presence::Absent, _) => "can't be created",
        (_, Why::Protected) => "protected",
        (_, Why::Minimal) => "minimal",
        (_, Why::Glob) => "matches a pattern",
        (_, Why::Pinned) => "can't be moved",
        (_, Why::Entry) => "",
    }
}

fn row(rule: &Rule, why: &'static str) -> [Cell; 3] {
    let tone = match rule.access {
        Access::Read => Tone::Quiet,
        Access::Write => Tone::Good,
        Access::Deny => Tone::Bad,
    };
    [
        Cell::toned(rule.access.word(), tone),
        Cell::plain(shown(&rule.path)),
        Cell::plain(why),
    ]
}

fn of_rule(rule: &Rule) -> Value {
    let presence = match rule.presence {
        Presence::Directory => "directory",
        Presence::File => "file",
        Presence::Absent => "absent",
    };
    let why = match rule.why {
        Why::Entry => "entry",
        Why::Protected => "protected",
        Why::Minimal => "minimal",
        Why::Glob => "glob",
        Why::Pinned => "pinned",
    };
    json!({
        "path": rule.path.to_string_lossy(),
        "access": rule.access.word(),
        "presence": presence,
        "why": why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let rule = |path: &str, access, presence, why| Rule {
            path: path.into(),
            access,
            presence,
            identity: None,
            why,
        };
        Plan {
            rules: vec![
                rule("/usr", Access::Read, Presence::Directory, Why::Minimal),
                rule("/ws", Access::Write, Presence::Directory, Why::Entry),
                rule("/ws/.codex", Access::Read, Presence::Absent, Why::Protected),
                rule(
                    "/ws/.git",
                    Access::Read,
                    Presence::Directory,
                    Why::Protected,
                ),
                rule("/ws/a\u{1b}.pem", Access::Deny, Presence::File, Why::Glob),
            ],
            links: Vec::new(),
            network: Network::Restricted,
            cwd: "/ws".into(),
            warnings: Vec::new(),
        }
    }

    fn plain() -> Paint {
        Paint::on(&std::fs::File::open("/dev/null").unwrap())
    }

    #[test]
    fn people_see_it_aligned_and_nothing_reaches_their_terminal_as_a_command() {
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
            refusal: None,
        };
        let lines = explanation.lines(None, plain());
        insta::assert_snapshot!(lines.join("\n"), @r"
        profile     :workspace
        directory   /ws
        network     none but a loopback of its own

        ACCESS  PATH             WHY
        read    /usr             minimal
        write   /ws
        read    /ws/.codex       protected: can't be created
        read    /ws/.git         protected
        deny    /ws/a\u{1b}.pem  matches a pattern
        What isn't listed doesn't exist inside.

        namespaces  user and mount
        ");
        let rules = &explanation.json()["rules"];
        assert_eq!(
            rules[2],
            json!({"path": "/ws/.codex", "access": "read", "presence": "absent", "why": "protected"})
        );
    }

    #[test]
    fn what_can_not_be_enforced_and_what_is_not_confined_is_said() {
        let plan = plan();
        let mut explanation = Explanation {
            profile: ":workspace",
            cwd: Path::new("/ws"),
            plan: Some(&plan),
            level: Level::Landlock,
            layers: Vec::new(),
            refusal: Some("bwrap is missing".to_owned()),
        };
        let lines = explanation.lines(None, plain());
        for (path, kept) in [
            ("/ws/.codex", "not kept: can be created"),
            ("/ws/.git", "not kept: can be written"),
        ] {
            let mut about = lines.iter().filter(|line| line.contains(path));
            assert!(about.all(|line| line.ends_with(kept)), "{lines:?}");
        }
        let last = lines[lines.len() - 2..].join("\n");
        assert_eq!(
            last,
            "sandbox.level is \"landlock\", the weaker promise: what is read-only within what may be \
             written can be written.\n\
             It can't be enforced here: bwrap is missing"
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
