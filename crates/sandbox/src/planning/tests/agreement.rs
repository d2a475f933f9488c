//! For any policy and any path, the plan decides what the words of the policy say.

use std::path::Path;

use proptest::prelude::*;

use super::{super::pattern::Pattern, *};

const PROTECTED: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// Trees over a few names, so that entries meet paths often.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", ".git", ".codex"])
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 0..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn tree() -> impl Strategy<Value = MadeUp> {
    prop::collection::vec(path(), 1..12).prop_map(|paths| {
        let words: Vec<String> = paths.iter().map(|path| format!("{path}/")).collect();
        MadeUp::new(&words.join(" "))
    })
}

fn access() -> impl Strategy<Value = Access> {
    prop::sample::select(vec![Access::Read, Access::Write, Access::Deny])
}

fn entry() -> impl Strategy<Value = Entry> {
    let globs = vec!["**/b", "/a/*", "/*/c", "**/c/**", "/b/**"];
    prop_oneof![
        4 => (path(), access()).prop_map(|(path, access)| at(&path, access)),
        1 => prop::sample::select(globs).prop_map(pattern),
    ]
}

/// What the words say about a path: the most specific path that anything is said of decides.
fn by_the_words(entries: &[Entry], tree: &MadeUp, path: &Path) -> Access {
    let exists = |path: &Path| tree.paths().any(|there| there == path);
    let everything_writable =
        entries.iter().all(|entry| entry.access == Access::Write) && entries.contains(&write("/"));
    let said_of = |path: &Path| -> Vec<Access> {
        let named = entries.iter().filter(|entry| match &entry.place {
            Place::Path(named) => named == path,
            Place::Pattern(text) => {
                let all = Pattern::all(Path::new("/"), text, 1024).unwrap();
                exists(path)
                    && all.iter().any(|one| {
                        let rest = path.strip_prefix(&one.base);
                        rest.is_ok_and(|rest| {
                            !rest.as_os_str().is_empty() && super::globs::matches(one, rest)
                        })
                    })
            }
            Place::Special(_) => false,
        });
        named.map(|entry| entry.access).collect()
    };
    // A writable root is what an entry grants, whatever patterns say.
    let granted = |path: &Path| {
        let of_paths = entries.iter().filter(|entry| match &entry.place {
            Place::Path(named) => named == path,
            _ => false,
        });
        of_paths.map(|entry| entry.access).max() == Some(Access::Write)
    };
    for above in path.ancestors() {
        let mut said = said_of(above);
        let parent = above.parent();
        let is_protected = !everything_writable
            && parent.is_some_and(granted)
            && PROTECTED.iter().any(|name| above.ends_with(name));
        let named = entries
            .iter()
            .any(|entry| entry.place == Place::Path(above.to_owned()));
        if is_protected && !named {
            said.push(Access::Read);
        }
        if let Some(strictest) = said.into_iter().max() {
            return strictest;
        }
    }
    Access::Deny
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_plan_decides_what_the_words_say(
        tree in tree(),
        entries in prop::collection::vec(entry(), 1..7),
    ) {
        let exists = |path: &Path| tree.paths().any(|there| there == path);
        // What is absent has rules of its own, and tests of its own.
        let entries: Vec<Entry> = entries
            .into_iter()
            .filter(|entry| match &entry.place {
                Place::Path(path) => exists(path),
                _ => true,
            })
            .collect();
        let mut policy = policy(entries.clone());
        policy.cwd = "/".into();
        let plan = plan(&policy, &child(), &tree, &Bounds::default()).unwrap();
        for path in tree.paths() {
            let expected = by_the_words(&entries, &tree, path);
            prop_assert_eq!(plan.access(path), expected, "{} in\n{}", path.display(), told(&plan));
        }
    }

    #[test]
    fn whatever_is_asked_for_the_rules_are_in_order_and_nothing_absent_is_writable(
        tree in tree(),
        entries in prop::collection::vec(entry(), 1..7),
    ) {
        let entries = entries.into_iter().map(Entry::skipping_missing).collect();
        let plan = plan(&policy(entries), &child(), &tree, &Bounds::default()).unwrap();
        for (at, rule) in plan.rules.iter().enumerate() {
            let later = &plan.rules[at + 1..];
            prop_assert!(later.iter().all(|later| !rule.path.starts_with(&later.path)));
            let exists = tree.paths().any(|there| there == rule.path);
            prop_assert_eq!(rule.presence == Presence::Absent, !exists);
            if rule.presence == Presence::Absent {
                prop_assert_ne!(rule.access, Access::Write);
                let parent = rule.path.parent().unwrap();
                prop_assert!(tree.paths().any(|there| there == parent));
                prop_assert_eq!(plan.access(parent), Access::Write);
            }
        }
    }
}
