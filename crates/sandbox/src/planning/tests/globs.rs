//! Patterns deny the files that exist when the plan is made.

use std::{path::Path, time::Duration};

use proptest::prelude::*;

use super::{
    super::{
        pattern::Pattern,
        pattern_matcher::{NameMatch, PatternMatcher},
    },
    *,
};

fn denied(tree: &FakeFileSystem, policy: &Policy) -> Vec<String> {
    let plan = planned(tree, policy);
    let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
    denied.map(|rule| rule.path.display().to_string()).collect()
}

fn globbed(patterns: &[&str]) -> Policy {
    let entries = patterns.iter().map(|text| pattern(text));
    policy(entries.chain([write("/ws"), read("/data")]).collect())
}

fn tree() -> FakeFileSystem {
    FakeFileSystem::new(
        "/ws/a.pem /ws/sub/b.pem /ws/sub/deep/c.pem /ws/sub/c.key /data/d.pem /other/e.pem \
         /ws/private/x /ws/private/y/z",
    )
}

#[test]
fn relative_pattern_starts_at_the_policys_cwd() {
    let all = ["/ws/a.pem", "/ws/sub/b.pem", "/ws/sub/deep/c.pem"];
    assert_eq!(denied(&tree(), &globbed(&["**/*.pem"])), all);
    assert_eq!(denied(&tree(), &globbed(&["*.pem"])), ["/ws/a.pem"]);
    assert_eq!(denied(&tree(), &globbed(&["*/*.pem"])), ["/ws/sub/b.pem"]);
    assert_eq!(denied(&tree(), &globbed(&["./a.pem"])), ["/ws/a.pem"]);
    assert_eq!(denied(&tree(), &globbed(&["../data/*"])), ["/data/d.pem"]);
    assert_eq!(
        denied(&tree(), &globbed(&["sub/*.{pem,key}"])),
        ["/ws/sub/b.pem", "/ws/sub/c.key"]
    );
}

#[test]
fn absolute_pattern_starts_at_the_root() {
    let all = [
        "/data/d.pem",
        "/ws/a.pem",
        "/ws/sub/b.pem",
        "/ws/sub/deep/c.pem",
    ];
    assert_eq!(denied(&tree(), &globbed(&["/**/*.pem"])), all);
    assert_eq!(denied(&tree(), &globbed(&["/data/*"])), ["/data/d.pem"]);
}

#[test]
fn project_roots_prefix_applies_to_each_root() {
    let mut policy = globbed(&[
        "codex-project-roots://*.pem",
        "codex-project-roots:///*/b.*",
    ]);
    policy.workspace_roots = vec!["/ws".into(), "/data".into()];
    let expected = ["/data/d.pem", "/ws/a.pem", "/ws/sub/b.pem"];
    assert_eq!(denied(&tree(), &policy), expected);
}

#[test]
fn matching_directory_is_denied_with_its_contents() {
    let only = denied(&tree(), &globbed(&["private", "private/**"]));
    assert_eq!(only, ["/ws/private"]);
    let inside = denied(&tree(), &globbed(&["private/**"]));
    assert_eq!(inside, ["/ws/private/x", "/ws/private/y"]);
    let mut policy = globbed(&["private"]);
    if let FileSystem::Restricted(files) = &mut policy.file_system {
        files.entries.push(read("/ws/private/y"));
    }
    let plan = planned(&tree(), &policy);
    assert_eq!(plan.access(Path::new("/ws/private/x")), Access::Deny);
    assert_eq!(plan.access(Path::new("/ws/private/y/z")), Access::Read);
}

#[test]
fn scan_depth_counts_from_the_base() {
    let deep = |depth| denied(&tree(), &with_depth(globbed(&["**/*.pem"]), depth));
    assert_eq!(deep(0), [""; 0]);
    assert_eq!(deep(1), ["/ws/a.pem"]);
    assert_eq!(deep(2), ["/ws/a.pem", "/ws/sub/b.pem"]);
    assert_eq!(deep(9).len(), 3);
}

#[test]
fn matching_link_denies_its_target_and_is_not_descended() {
    let tree = FakeFileSystem::new(
        "/ws/a.pem>/ws/real /ws/real /ws/gone.pem>/nowhere /ws/dir>/other /other/e.pem",
    );
    assert_eq!(denied(&tree, &globbed(&["**/*.pem"])), ["/ws/real"]);
}

#[test]
fn directories_to_a_match_are_pinned() {
    let pinned = |text| {
        let plan = planned(&tree(), &globbed(&[text]));
        let pinned = plan
            .rules
            .iter()
            .filter(|rule| rule.origin == crate::Origin::Pinned);
        pinned
            .map(|rule| rule.path.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(pinned("sub/deep/*"), ["/ws/sub", "/ws/sub/deep"]);
    assert_eq!(pinned("**/deep/*"), ["/ws/sub", "/ws/sub/deep"]);
    // Also if the next scan would find a moved match again: it may be moved while that scan runs, or below
    // its depth.
    assert_eq!(pinned("**/*.pem"), ["/ws/sub", "/ws/sub/deep"]);
}

#[test]
fn directory_with_a_long_path_is_denied() {
    let limits = PlanLimits {
        path_bytes: 10,
        ..PlanLimits::default()
    };
    let tree = FakeFileSystem::new("/ws/123456/a.pem /ws/1234567/a.pem /ws/1234567/b/");
    let long = |policy: &Policy| plan(policy, &context(), &tree, &limits);
    let planned = long(&globbed(&["**/*.pem"])).unwrap();
    let denied: Vec<_> = planned
        .rules
        .iter()
        .filter(|rule| rule.access == Access::Deny)
        .collect();
    let denied: Vec<_> = denied
        .iter()
        .map(|rule| rule.path.to_str().unwrap())
        .collect();
    assert_eq!(denied, ["/ws/123456/a.pem", "/ws/1234567"]);
    assert_eq!(planned.warnings.len(), 1, "{:?}", planned.warnings);
    // Nothing below the scan depth matches.
    let planned = long(&with_depth(globbed(&["**/*.pem"]), 1)).unwrap();
    assert!(planned.rules.iter().all(|rule| rule.access != Access::Deny));
    // A grant in it can't be scanned.
    let entries = vec![write("/ws"), write("/ws/1234567/b"), pattern("**/*.pem")];
    let error = long(&policy(entries)).unwrap_err();
    assert_eq!(error.failure_kind(), FailureKind::Intent);
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn granting_pattern_is_rejected() {
    for access in [Access::Read, Access::Write] {
        let entry = Entry::pattern("**/*.rs", access);
        let (kind, message) = rejected(&tree(), &policy(vec![entry]));
        assert_eq!(kind, FailureKind::Intent);
        assert_eq!(message, "the pattern \"**/*.rs\" can only deny");
    }
}

#[test]
fn scan_of_too_many_files_is_rejected_with_advice() {
    let limits = PlanLimits {
        visited: 5,
        ..PlanLimits::default()
    };
    let policy = globbed(&["**/*.pem"]);
    let error = plan(&policy, &context(), &tree(), &limits).unwrap_err();
    assert_eq!(error.failure_kind(), FailureKind::Intent);
    assert!(error.to_string().contains("glob_scan_max_depth"), "{error}");
    let long = "a".repeat(2000);
    let (kind, message) = rejected(&tree(), &globbed(&[&long]));
    assert_eq!(kind, FailureKind::Intent);
    assert!(message.contains("longer than 1024 bytes"), "{message}");
}

#[test]
fn slow_scan_is_rejected_with_advice() {
    let policy = globbed(&["**/*.pem"]);
    let slow = tree().slow(Duration::from_secs(1));
    let (kind, message) = rejected(&slow, &policy);
    assert_eq!(kind, FailureKind::Intent);
    assert!(message.contains("takes longer than 5s"), "{message}");
    assert!(message.contains("glob_scan_max_depth"), "{message}");
    planned(&tree().slow(Duration::from_millis(1)), &policy);
}

#[test]
fn literal_patterns_empty_directories_and_alternatives_count() {
    let limits = PlanLimits {
        visited: 3,
        entries: 8,
        ..PlanLimits::default()
    };
    let rejection = |tree: &FakeFileSystem, policy: &Policy| {
        let error = plan(policy, &context(), tree, &limits).unwrap_err();
        error.to_string()
    };
    let plain = globbed(&["a", "b", "c", "d"]);
    let message = rejection(&tree(), &plain);
    assert!(message.contains("more than 3 files"), "{message}");
    let empty = FakeFileSystem::new("/ws/a/ /data/");
    let message = rejection(&empty, &globbed(&["*/*", "a/*"]));
    assert!(message.contains("more than 3 files"), "{message}");
    let message = rejection(&tree(), &globbed(&["{1,2,3,4,5}", "{1,2,3,4,5}"]));
    assert!(
        message.contains("10 entries, and the limit is 8"),
        "{message}"
    );
}

/// Matches a path relative to the pattern's base.
fn name_match(pattern: &Pattern, path: &Path) -> Option<NameMatch> {
    let mut walk = PatternMatcher::new(pattern);
    walk.enter(path.parent()?);
    Some(walk.match_name(path.file_name()?))
}

pub(super) fn matches(pattern: &Pattern, path: &Path) -> bool {
    name_match(pattern, path).is_some_and(|name_match| name_match.matches)
}

fn may_match_below(pattern: &Pattern, path: &Path) -> bool {
    match name_match(pattern, path) {
        Some(name_match) => name_match.may_match_below,
        // The base.
        None => true,
    }
}

fn is_match(text: &str, path: &str) -> bool {
    let base = Path::new("/");
    let all = Pattern::all(base, text, 1024).unwrap();
    all.iter().any(|one| {
        let path = Path::new(path);
        match path.strip_prefix(&one.base) {
            Ok(rest) if one.is_literal() => rest.as_os_str().is_empty(),
            Ok(rest) => matches(one, rest),
            Err(_) => false,
        }
    })
}

#[test]
fn wildcards_sets_and_escapes_match() {
    let cases = [
        ("*", "/a", true),
        ("*", "/a/b", false),
        ("?", "/ä", true),
        ("?", "/ab", false),
        ("a?b", "/a/b", false),
        ("**", "/a/b", true),
        ("a/**", "/a/b/c", true),
        ("a/**", "/a", false),
        ("**/a", "/a", true),
        ("**/a", "/x/y/a", true),
        ("**/a", "/xa", false),
        ("x/**/a", "/x/a", true),
        ("x/**/a", "/x/y/z/a", true),
        ("x/**/a", "/xa", false),
        ("a**b", "/a/x/b", true),
        ("[a-c]", "/b", true),
        ("[!a-c]", "/b", false),
        ("[^a]", "/b", true),
        ("[]]", "/]", true),
        ("[a", "/[a", true),
        ("*[a", "/x[a", true),
        ("[a/b]", "/[a/b]", true),
        ("x[!a]y", "/x/y", false),
        ("\\*", "/*", true),
        ("\\*", "/a", false),
        (".*", "/.env", true),
        ("*.env", "/.env", true),
    ];
    for (text, path, expected) in cases {
        assert_eq!(is_match(text, path), expected, "{text} {path}");
    }
}

/// Reference implementation with backtracking.
fn naive(text: &[char], path: &[char]) -> bool {
    match text {
        ['*', '*', '/', rest @ ..] => {
            naive(rest, path)
                || (0..path.len()).any(|at| path[at] == '/' && naive(rest, &path[at + 1..]))
        }
        ['*', '*', rest @ ..] => (0..=path.len()).any(|at| naive(rest, &path[at..])),
        ['*', rest @ ..] => (0..=path.len())
            .take_while(|at| !path[..*at].contains(&'/'))
            .any(|at| naive(rest, &path[at..])),
        ['?', rest @ ..] => !path.is_empty() && path[0] != '/' && naive(rest, &path[1..]),
        [character, rest @ ..] => path.first() == Some(character) && naive(rest, &path[1..]),
        [] => path.is_empty(),
    }
}

fn pattern_text() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("**".to_owned()),
        "[ab*?]{1,3}".prop_filter("no double star", |name| { !name.contains("**") })
    ];
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

proptest! {
    #[test]
    fn automaton_agrees_with_backtracking(
        text in pattern_text(),
        path in prop::collection::vec("[ab]{1,2}", 1..5),
    ) {
        let path = path.join("/");
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = naive(&chars(&text), &chars(&path));
        prop_assert_eq!(is_match(&text, &format!("/{path}")), expected);
    }

    #[test]
    fn directories_above_a_match_are_descended(
        text in pattern_text(),
        path in prop::collection::vec("[ab]{1,2}", 1..5),
    ) {
        let one = &Pattern::all(Path::new("/"), &format!("*/{text}"), 1024).unwrap()[0];
        let path = path.join("/");
        let path = Path::new(&path);
        prop_assume!(matches(one, path));
        for above in path.ancestors().skip(1) {
            prop_assert!(may_match_below(one, above), "{}", above.display());
        }
    }
}

#[test]
fn empty_pattern_is_rejected() {
    let tree = FakeFileSystem::new("/ws/");
    let (kind, message) = rejected(&tree, &policy(vec![write("/ws"), pattern("")]));
    assert_eq!(kind, FailureKind::Intent);
    assert_eq!(message, "a pattern is empty");
}
