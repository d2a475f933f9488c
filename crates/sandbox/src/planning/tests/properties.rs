//! Properties: for any policy and path, a plan has the access that the policy defines.

use std::path::Path;

use proptest::prelude::*;

use super::{super::pattern::Pattern, *};

const PROTECTED: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// Few names, so that entries and paths often coincide.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", ".git", ".codex"])
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 0..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn tree() -> impl Strategy<Value = FakeFileSystem> {
    prop::collection::vec(path(), 1..12).prop_map(|paths| {
        let directories: Vec<String> = paths.iter().map(|path| format!("{path}/")).collect();
        FakeFileSystem::new(&directories.join(" "))
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

/// Reference implementation: the most specific path with an entry decides.
fn expected_access(entries: &[Entry], tree: &FakeFileSystem, path: &Path) -> Access {
    let exists = |path: &Path| tree.paths().any(|existing| existing == path);
    let everything_writable =
        entries.iter().all(|entry| entry.access == Access::Write) && entries.contains(&write("/"));
    let accesses_at = |path: &Path| -> Vec<Access> {
        let named = entries.iter().filter(|entry| match &entry.path {
            EntryPath::Path { path: named } => named == path,
            EntryPath::GlobPattern { pattern: text } => {
                let all = Pattern::all(Path::new("/"), text, 1024).unwrap();
                exists(path)
                    && all.iter().any(|one| {
                        let rest = path.strip_prefix(&one.base);
                        rest.is_ok_and(|rest| {
                            !rest.as_os_str().is_empty() && super::globs::matches(one, rest)
                        })
                    })
            }
            EntryPath::Special { .. } => false,
        });
        named.map(|entry| entry.access).collect()
    };
    // An entry alone makes a writable root; patterns don't matter.
    let granted = |path: &Path| {
        let of_paths = entries.iter().filter(|entry| match &entry.path {
            EntryPath::Path { path: named } => named == path,
            _ => false,
        });
        of_paths.map(|entry| entry.access).max() == Some(Access::Write)
    };
    for above in path.ancestors() {
        let mut accesses = accesses_at(above);
        let parent = above.parent();
        let is_protected = !everything_writable
            && parent.is_some_and(granted)
            && PROTECTED.iter().any(|name| above.ends_with(name));
        let named = entries
            .iter()
            .any(|entry| matches!(&entry.path, EntryPath::Path { path } if path == above));
        if is_protected && !named {
            accesses.push(Access::Read);
        }
        if let Some(strictest) = accesses.into_iter().max() {
            return strictest;
        }
    }
    Access::Deny
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn plan_has_the_access_that_the_policy_defines(
        tree in tree(),
        entries in prop::collection::vec(entry(), 1..7),
    ) {
        let exists = |path: &Path| tree.paths().any(|existing| existing == path);
        // Absent paths have tests of their own.
        let entries: Vec<Entry> = entries
            .into_iter()
            .filter(|entry| match &entry.path {
                EntryPath::Path { path } => exists(path),
                _ => true,
            })
            .collect();
        let mut policy = policy(entries.clone());
        policy.cwd = "/".into();
        let plan = plan(&policy, &context(), &tree, &PlanLimits::default()).unwrap();
        for path in tree.paths() {
            let expected = expected_access(&entries, &tree, path);
            prop_assert_eq!(plan.access(path), expected, "{} in\n{}", path.display(), summary(&plan));
        }
    }

    #[test]
    fn rules_are_sorted_and_absent_paths_are_not_writable(
        tree in tree(),
        entries in prop::collection::vec(entry(), 1..7),
    ) {
        let entries = entries.into_iter().map(Entry::skip_missing).collect();
        let plan = plan(&policy(entries), &context(), &tree, &PlanLimits::default()).unwrap();
        for (at, rule) in plan.rules.iter().enumerate() {
            let later = &plan.rules[at + 1..];
            prop_assert!(later.iter().all(|later| !rule.path.starts_with(&later.path)));
            let exists = tree.paths().any(|existing| existing == rule.path);
            prop_assert_eq!(rule.presence == PathState::Absent, !exists);
            if rule.presence == PathState::Absent {
                prop_assert_ne!(rule.access, Access::Write);
                let parent = rule.path.parent().unwrap();
                prop_assert!(tree.paths().any(|existing| existing == parent));
                prop_assert_eq!(plan.access(parent), Access::Write);
            }
        }
    }
}
