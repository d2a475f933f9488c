//! Computes the environment of a child in six steps.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use outpost_types::{EnvPolicy, Inherit};

const CORE: [&str; 11] = [
    "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME",
    "USER",
];
const SECRETS: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];
/// The prefix of the server's own variables, which may hold credentials.
const OWN_PREFIX: &str = "OUTPOST_";
/// Credentials and settings of other servers that this server replaces.
const WITHHELD: [&str; 6] = [
    "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "NODE_REPL_AUTH_TOKEN",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
];

/// The server's environment at its start.
#[derive(Clone, Debug, Default)]
pub struct ServerEnvironment {
    variables: BTreeMap<OsString, OsString>,
}

impl ServerEnvironment {
    /// Stores these variables, without those that no child may have.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        ServerEnvironment {
            variables: variables
                .into_iter()
                .filter(|(name, _)| !is_withheld(name))
                .collect(),
        }
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Computes the environment of a child: the result of the policy, overridden by the
    /// variables of the request, or only those without a policy. A name without a value
    /// is unset. Variables that no child may have are dropped, even if they are requested.
    #[must_use]
    pub fn for_child(
        &self,
        policy: Option<&EnvPolicy>,
        overlay: BTreeMap<String, Option<String>>,
    ) -> Vec<(OsString, OsString)> {
        let mut result = policy.map(|policy| self.apply(policy)).unwrap_or_default();
        for (name, value) in overlay {
            match value {
                Some(value) => result.insert(name.into(), value.into()),
                None => result.remove(&OsString::from(name)),
            };
        }
        result.retain(|name, _| !is_withheld(name));
        result.into_iter().collect()
    }

    fn apply(&self, policy: &EnvPolicy) -> BTreeMap<OsString, OsString> {
        let mut result = match policy.inherit {
            Inherit::All => self.variables.clone(),
            Inherit::None => BTreeMap::new(),
            Inherit::Core => self
                .variables
                .iter()
                .filter(|(name, _)| CORE.iter().any(|core| name.eq_ignore_ascii_case(core)))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        };
        if !policy.ignore_default_excludes {
            drop_matching(&mut result, &SECRETS);
        }
        drop_matching(&mut result, &policy.exclude);
        for (name, value) in &policy.set {
            result.insert(name.into(), value.into());
        }
        if !policy.include_only.is_empty() {
            result.retain(|name, _| matches_any(name, &policy.include_only));
        }
        result
    }
}

/// Whether no child may have a variable, inherited or requested. Ignores case, as `http/request`
/// does.
pub(crate) fn is_withheld(name: &OsStr) -> bool {
    let start = name.as_encoded_bytes().get(..OWN_PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX.as_bytes()))
        || WITHHELD
            .iter()
            .any(|other| name.eq_ignore_ascii_case(other))
}

fn drop_matching(variables: &mut BTreeMap<OsString, OsString>, patterns: &[impl AsRef<str>]) {
    if !patterns.is_empty() {
        variables.retain(|name, _| !matches_any(name, patterns));
    }
}

fn matches_any(name: &OsString, patterns: &[impl AsRef<str>]) -> bool {
    let name: Vec<char> = folded(&name.to_string_lossy());
    patterns
        .iter()
        .any(|pattern| matches(&folded(pattern.as_ref()), &name))
}

fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Whether a glob of `*` and `?` matches the whole text. Greedy with a single
/// backtracking point, so it takes at most quadratic time.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerEnvironment {
        let variables = [
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("EDITOR", "vi"),
            ("AWS_REGION", "x"),
            ("MY_API_KEY", "k"),
            ("github_token", "t"),
            ("OUTPOST_TOKEN_FILE", "never"),
            ("outpost_token", "never"),
            ("CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN", "never"),
            ("CODEX_EXEC_SERVER_URL", "no secret"),
        ];
        ServerEnvironment::new(variables.map(|(name, value)| (name.into(), value.into())))
    }

    fn names(policy: &EnvPolicy, overlay: &[(&str, &str)]) -> Vec<String> {
        let overlay = overlay
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())))
            .collect();
        server()
            .for_child(Some(policy), overlay)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn environment_without_policy_is_exactly_the_request() {
        let only = BTreeMap::from([("ONLY".to_owned(), Some("this".to_owned()))]);
        assert_eq!(
            server().for_child(None, only),
            [("ONLY".into(), "this".into())]
        );
    }

    #[test]
    fn name_without_value_is_unset() {
        let overlay = BTreeMap::from([("PATH".to_owned(), None), ("NEVER_WAS".to_owned(), None)]);
        let env = server().for_child(Some(&EnvPolicy::default()), overlay);
        let names: Vec<_> = env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["AWS_REGION", "CODEX_EXEC_SERVER_URL", "EDITOR", "HOME"]
        );
    }

    #[test]
    fn inherit_all_drops_secrets_and_own_variables() {
        let policy = EnvPolicy::default();
        assert_eq!(
            names(&policy, &[]),
            [
                "AWS_REGION",
                "CODEX_EXEC_SERVER_URL",
                "EDITOR",
                "HOME",
                "PATH"
            ]
        );
    }

    #[test]
    fn own_variables_never_leak_even_with_secrets_allowed() {
        let policy = EnvPolicy {
            ignore_default_excludes: true,
            ..EnvPolicy::default()
        };
        let names = names(&policy, &[]);
        assert!(names.contains(&"MY_API_KEY".to_owned()));
        let own = |name: &String| name.to_uppercase().starts_with("OUTPOST_");
        assert!(!names.iter().any(own));
        assert!(!names.iter().any(|name| name.contains("NOISE")));
    }

    #[test]
    fn withheld_variables_are_dropped_in_any_case_even_if_requested() {
        let requested = |name: &str| (name.to_owned(), Some("requested".to_owned()));
        let mut overlay = BTreeMap::from([requested("KEPT"), requested("MY_OUTPOST_X")]);
        let mut set = BTreeMap::new();
        for name in WITHHELD.into_iter().chain(["OUTPOST_ANY", "OUTPOST_"]) {
            for name in [name.to_owned(), name.to_lowercase()] {
                overlay.insert(name.clone(), Some("requested".to_owned()));
                set.insert(name, "set".to_owned());
            }
        }
        let policy = EnvPolicy {
            inherit: Inherit::None,
            set,
            ..EnvPolicy::default()
        };
        for policy in [None, Some(&policy)] {
            let env = server().for_child(policy, overlay.clone());
            let names: Vec<_> = env.iter().map(|(name, _)| name.to_str().unwrap()).collect();
            assert_eq!(names, ["KEPT", "MY_OUTPOST_X"]);
        }
    }

    #[test]
    fn inherit_core_keeps_core_names() {
        let policy = EnvPolicy {
            inherit: Inherit::Core,
            ..EnvPolicy::default()
        };
        assert_eq!(names(&policy, &[]), ["HOME", "PATH"]);
    }

    #[test]
    fn steps_apply_in_order() {
        let policy = EnvPolicy {
            exclude: vec!["aws_*".into(), "EDITO?".into()],
            set: BTreeMap::from([
                ("SECRET_SET".into(), "kept".into()),
                ("B".into(), "2".into()),
            ]),
            include_only: vec!["S*".into(), "path".into()],
            ..EnvPolicy::default()
        };
        // `set` is applied after the secrets are dropped, the overlay after the last
        // filter.
        assert_eq!(names(&policy, &[("C", "3")]), ["C", "PATH", "SECRET_SET"]);
    }

    #[test]
    fn globs_match() {
        let glob = |pattern: &str, text: &str| matches(&folded(pattern), &folded(text));
        assert!(glob("*KEY*", "monkey_business"));
        assert!(glob("a?c", "ABC"));
        assert!(glob("*", ""));
        assert!(glob("a*b*c", "aXbXbXc"));
        assert!(!glob("a?c", "ac"));
        assert!(!glob("AWS_*", "MY_AWS_X"));
        assert!(!glob("", "x"));
        assert!(
            !glob("*a*a*a*a*a*b", &"a".repeat(2000)),
            "and without hanging"
        );
    }
}
