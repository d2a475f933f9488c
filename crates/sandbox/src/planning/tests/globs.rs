//! Patterns: they deny what is there when the plan is made.

use std::{path::Path, time::Duration};

use proptest::prelude::*;

use super::{
    super::{
        pattern::Pattern,
        walk::{Bearing, Walk},
    },
    *,
};

fn denied(tree: &MadeUp, policy: &Policy) -> Vec<String> {
    let plan = planned(tree, policy);
    let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
    denied.map(|rule| rule.path.display().to_string()).collect()
}

fn globbed(patterns: &[&str]) -> Policy {
    let entries = patterns.iter().map(|text| pattern(text));
    policy(entries.chain([write("/ws"), read("/data")]).collect())
}

fn tree() -> MadeUp {
    MadeUp::new(
        "/ws/a.pem /ws/sub/b.pem /ws/sub/deep/c.pem /ws/sub/c.key /data/d.pem /other/e.pem \
         /ws/private/x /ws/private/y/z",
    )
}

#[test]
fn relative_ones_start_at_the_working_directory_of_the_sandbox() {
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
fn absolute_ones_start_at_the_root_and_hide_only_what_is_seen() {
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
fn one_prefix_means_each_project_root() {
    let mut policy = globbed(&[
        "codex-project-roots://*.pem",
        "codex-project-roots:///*/b.*",
    ]);
    policy.workspace_roots = vec!["/ws".into(), "/data".into()];
    let expected = ["/data/d.pem", "/ws/a.pem", "/ws/sub/b.pem"];
    assert_eq!(denied(&tree(), &policy), expected);
}

#[test]
fn a_directory_that_matches_is_denied_with_all_that_is_in_it() {
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
fn the_depth_of_the_scan_counts_from_where_it_starts() {
    let deep = |depth| denied(&tree(), &with_depth(globbed(&["**/*.pem"]), depth));
    assert_eq!(deep(0), [""; 0]);
    assert_eq!(deep(1), ["/ws/a.pem"]);
    assert_eq!(deep(2), ["/ws/a.pem", "/ws/sub/b.pem"]);
    assert_eq!(deep(9).len(), 3);
}

#[test]
fn a_link_that_matches_denies_what_it_leads_to_and_is_not_walked_through() {
    let tree = MadeUp::new(
        "/ws/a.pem>/ws/real /ws/real /ws/gone.pem>/nowhere /ws/dir>/other /other/e.pem",
    );
    assert_eq!(denied(&tree, &globbed(&["**/*.pem"])), ["/ws/real"]);
}

#[test]
fn the_way_to_a_match_is_pinned_where_the_pattern_names_it() {
    let pinned = |text| {
        let plan = planned(&tree(), &globbed(&[text]));
        let pinned = plan
            .rules
            .iter()
            .filter(|rule| rule.why == crate::Why::Pinned);
        pinned
            .map(|rule| rule.path.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(pinned("sub/deep/*"), ["/ws/sub", "/ws/sub/deep"]);
    assert_eq!(pinned("**/deep/*"), ["/ws/sub", "/ws/sub/deep"]);
    // Wherever these are moved, they are found again.
    assert_eq!(pinned("**/*.pem"), [""; 0]);
}

#[test]
fn they_can_only_deny() {
    for access in [Access::Read, Access::Write] {
        let entry = Entry::new(Place::Pattern("**/*.rs".into()), access);
        let (failing, words) = refused(&tree(), &policy(vec![entry]));
        assert_eq!(failing, Failing::Intent);
        assert_eq!(words, "the pattern \"**/*.rs\" can only deny");
    }
}

#[test]
fn a_scan_that_does_not_end_is_refused_with_advice() {
    let bounds = Bounds {
        visited: 5,
        ..Bounds::default()
    };
    let policy = globbed(&["**/*.pem"]);
    let error = plan(&policy, &child(), &tree(), &bounds).unwrap_err();
    assert_eq!(error.failing(), Failing::Intent);
    assert!(error.to_string().contains("glob_scan_max_depth"), "{error}");
    let long = "a".repeat(2000);
    let (failing, words) = refused(&tree(), &globbed(&[&long]));
    assert_eq!(failing, Failing::Intent);
    assert!(words.contains("longer than 1024 bytes"), "{words}");
}

#[test]
fn a_scan_that_takes_long_is_refused_with_advice() {
    let policy = globbed(&["**/*.pem"]);
    let slow = tree().slow(Duration::from_secs(1));
    let (failing, words) = refused(&slow, &policy);
    assert_eq!(failing, Failing::Intent);
    assert!(words.contains("takes longer than 5s"), "{words}");
    assert!(words.contains("glob_scan_max_depth"), "{words}");
    planned(&tree().slow(Duration::from_millis(1)), &policy);
}

#[test]
fn plain_patterns_empty_directories_and_alternatives_count() {
    let bounds = Bounds {
        visited: 3,
        entries: 8,
        ..Bounds::default()
    };
    let refusal = |tree: &MadeUp, policy: &Policy| {
        let error = plan(policy, &child(), tree, &bounds).unwrap_err();
        error.to_string()
    };
    let plain = globbed(&["a", "b", "c", "d"]);
    let said = refusal(&tree(), &plain);
    assert!(said.contains("more than 3 files"), "{said}");
    let empty = MadeUp::new("/ws/a/ /data/");
    let said = refusal(&empty, &globbed(&["*/*", "a/*"]));
    assert!(said.contains("more than 3 files"), "{said}");
    let said = refusal(&tree(), &globbed(&["{1,2,3,4,5}", "{1,2,3,4,5}"]));
    assert!(said.contains("10 entries and 8 is the limit"), "{said}");
}

/// What a pattern says about a path below its base.
fn bearing(pattern: &Pattern, path: &Path) -> Option<Bearing> {
    let mut walk = Walk::new(pattern);
    walk.enter(path.parent()?);
    Some(walk.look_at(path.file_name()?))
}

pub(super) fn matches(pattern: &Pattern, path: &Path) -> bool {
    bearing(pattern, path).is_some_and(|bearing| bearing.matches)
}

fn leads_below(pattern: &Pattern, path: &Path) -> bool {
    match bearing(pattern, path) {
        Some(bearing) => bearing.leads_below,
        // The base itself.
        None => true,
    }
}

fn is_match(text: &str, path: &str) -> bool {
    let base = Path::new("/");
    let all = Pattern::all(base, text, 1024).unwrap();
    all.iter().any(|one| {
        let path = Path::new(path);
        match path.strip_prefix(&one.base) {
            Ok(rest) if one.is_plain() => rest.as_os_str().is_empty(),
            Ok(rest) => matches(one, rest),
            Err(_) => false,
        }
    })
}

#[test]
fn what_the_signs_mean() {
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

/// The same meaning, said by trying everything.
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
        [letter, rest @ ..] => path.first() == Some(letter) && naive(rest, &path[1..]),
        [] => path.is_empty(),
    }
}

fn pattern_text() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("**".to_owned()),
        "[ab*?]{1,3}".prop_filter("one noun", |name| { !name.contains("**") })
    ];
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

proptest! {
    #[test]
    fn matching_is_what_trying_everything_says(
        text in pattern_text(),
        path in prop::collection::vec("[ab]{1,2}", 1..5),
    ) {
        let path = path.join("/");
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = naive(&letters(&text), &letters(&path));
        prop_assert_eq!(is_match(&text, &format!("/{path}")), expected);
    }

    #[test]
    fn no_directory_on_the_way_to_a_match_is_passed_by(
        text in pattern_text(),
        path in prop::collection::vec("[ab]{1,2}", 1..5),
    ) {
        let one = &Pattern::all(Path::new("/"), &format!("*/{text}"), 1024).unwrap()[0];
        let path = path.join("/");
        let path = Path::new(&path);
        prop_assume!(matches(one, path));
        for above in path.ancestors().skip(1) {
            prop_assert!(leads_below(one, above), "{}", above.display());
        }
    }
}

#[test]
fn an_empty_pattern_is_none() {
    let tree = MadeUp::new("/ws/");
    let (failing, words) = refused(&tree, &policy(vec![write("/ws"), pattern("")]));
    assert_eq!(failing, Failing::Intent);
    assert_eq!(words, "an empty pattern names nothing");
}
