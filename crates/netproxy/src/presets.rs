//! Network policies that are built in. `docs/network.md` lists them.

use crate::{NetworkPolicy, Rule};

/// Built-in policies by name, each with the patterns that it allows.
const PRESETS: [(&str, &[&str]); 6] = [
    (
        "cargo",
        &[
            "crates.io:443",
            "index.crates.io:443",
            "static.crates.io:443",
        ],
    ),
    (
        "debian",
        &[
            "deb.debian.org:80",
            "deb.debian.org:443",
            "security.debian.org:80",
            "security.debian.org:443",
        ],
    ),
    (
        "git-https",
        &[
            "bitbucket.org:443",
            "codeberg.org:443",
            "github.com:443",
            "gitlab.com:443",
        ],
    ),
    (
        "git-ssh",
        &[
            "bitbucket.org:22",
            "codeberg.org:22",
            "github.com:22",
            "gitlab.com:22",
        ],
    ),
    (
        "npm",
        &["registry.npmjs.org:443", "registry.yarnpkg.com:443"],
    ),
    ("pip", &["files.pythonhosted.org:443", "pypi.org:443"]),
];

/// Returns the names of the built-in policies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.into_iter().map(|(name, _)| name)
}

/// Returns a built-in policy.
pub(crate) fn preset(name: &str) -> Option<NetworkPolicy> {
    let (_, patterns) = PRESETS.into_iter().find(|(preset, _)| *preset == name)?;
    let rules = patterns.iter().map(|pattern| pattern.parse::<Rule>());
    Some(NetworkPolicy {
        allow: rules.filter_map(Result::ok).collect(),
        ..NetworkPolicy::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_valid_and_documented() {
        let documented = include_str!("../../../docs/network.md");
        let rows: Vec<_> = documented.lines().collect();
        for (name, patterns) in PRESETS {
            let policy = preset(name).expect("it exists");
            let shown: Vec<_> = policy.allow.iter().map(Rule::to_string).collect();
            assert_eq!(shown, patterns, "{name}");
            let row = format!("| `{name}` | `{}` |", patterns.join("`, `"));
            assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
        }
        assert_eq!(preset("none"), None);
    }
}
