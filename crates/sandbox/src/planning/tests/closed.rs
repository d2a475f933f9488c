//! Closed directories, which the server's user can't enter.

use super::*;

fn entries(more: impl IntoIterator<Item = Entry>) -> Policy {
    let mut entries = vec![read("/"), write("/ws")];
    entries.extend(more);
    policy(entries)
}

fn tree() -> FakeFileSystem {
    FakeFileSystem::new("/ws/a/d/secret /ws/a/open /ws/.git/ /ws/.agents/ /ws/.codex/ /ws/.aws/")
}

/// Returns the summary without protected names.
fn lines(plan: &Plan) -> Vec<String> {
    let summary = summary(plan);
    let lines = summary.lines().filter(|line| !line.ends_with("Protected"));
    lines.map(str::to_owned).collect()
}

#[test]
fn denial_in_own_closed_directory_denies_the_directory() {
    let tree = tree().closed("/ws/a/d").ours("/ws/a/d");
    let below = project_roots("a/d/secret");
    for (entry, origin, path) in [
        (deny("/ws/a/d/secret"), "Entry", "/ws/a/d/secret"),
        (deny("/ws/a/d/x/y"), "Entry", "/ws/a/d/x/y"),
        (special(below, Access::Deny), "Entry", "/ws/a/d/secret"),
        (pattern("a/d/secret"), "Glob", "/ws/a/d"),
        (pattern("a/d/e/*"), "Glob", "/ws/a/d"),
        (pattern("a/d/*"), "Glob", "/ws/a/d"),
        (pattern("**/secret"), "Glob", "/ws/a/d"),
    ] {
        let described = format!("{entry:?}");
        let plan = planned(&tree, &entries([entry]));
        let denied = format!("Deny /ws/a/d dir {origin}");
        let warning = format!(
            "! {path:?} cannot be inspected: its entry applies to the whole directory \"/ws/a/d\""
        );
        assert_eq!(
            lines(&plan),
            [
                "Read / dir Entry",
                "Write /ws dir Entry",
                "Write /ws/a dir Pinned",
                &denied,
                &warning,
            ],
            "{described}"
        );
    }
}

#[test]
fn read_only_path_in_own_closed_directory_makes_it_read_only() {
    let tree = tree().closed("/ws/a/d").ours("/ws/a/d");
    let plan = planned(&tree, &entries([read("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Read);
    // The stricter entry has precedence.
    let both = [read("/ws/a/d/secret"), deny("/ws/a/d/x")];
    let plan = planned(&tree, &entries(both));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
}

#[test]
fn unlistable_directory_is_closed_to_patterns_only() {
    let unlisted = tree().unlisted("/ws/a/d").ours("/ws/a/d");
    let plan = planned(&unlisted, &entries([pattern("**/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
    let plan = planned(&unlisted, &entries([deny("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Write);
    assert_eq!(plan.access(Path::new("/ws/a/d/secret")), Access::Deny);
}

#[test]
fn outermost_closed_directory_is_denied() {
    let tree = FakeFileSystem::new("/ws/a/b/c/secret")
        .closed("/ws/a")
        .ours("/ws/a")
        .ours("/ws/a/b");
    for entry in [deny("/ws/a/b/c/secret"), pattern("a/b/*")] {
        let plan = planned(&tree, &entries([entry]));
        assert_eq!(plan.access(Path::new("/ws/a")), Access::Deny);
    }
}

#[test]
fn closed_directory_of_another_user_is_ignored_unless_replaceable() {
    let theirs = tree().closed("/ws/a/d");
    let plan = planned(&theirs, &entries([deny("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
    let plan = planned(&theirs, &entries([pattern("**/secret")]));
    assert_eq!(
        lines(&plan),
        ["Read / dir Entry", "Write /ws dir Entry"],
        "patterns match only existing files"
    );
    let elsewhere = FakeFileSystem::new("/ws/ /theirs/key").closed("/theirs");
    let plan = planned(&elsewhere, &entries([deny("/theirs/key")]));
    assert_eq!(plan.access(Path::new("/theirs")), Access::Read);
    let summary = summary(&plan);
    assert!(
        summary.contains("! \"/theirs/key\" is ignored"),
        "{summary}"
    );
}

/// Another process may make the directory accessible while the sandboxed process runs.
#[test]
fn own_closed_directory_is_denied_below_a_read_only_path() {
    let tree = FakeFileSystem::new("/ws/ /srv/d/key")
        .closed("/srv/d")
        .ours("/srv/d");
    for entry in [deny("/srv/d/key"), pattern("/srv/**/key")] {
        let plan = planned(&tree, &entries([entry]));
        assert_eq!(plan.access(Path::new("/srv/d")), Access::Deny);
    }
    let plan = planned(&tree, &entries([read("/srv/d/key")]));
    assert_eq!(plan.access(Path::new("/srv/d")), Access::Read);
}

#[test]
fn denial_in_granted_closed_directory_is_rejected() {
    let tree = FakeFileSystem::new("/ws/a/secret")
        .closed("/ws/a")
        .ours("/ws/a");
    for entry in [deny("/ws/a/secret"), pattern("**/secret")] {
        let (kind, message) = rejected(&tree, &entries([write("/ws/a"), entry]));
        assert_eq!(kind, FailureKind::Intent);
        assert_eq!(
            message,
            "the server's user can't enter /ws/a, so the entries for paths in it can't be enforced"
        );
    }
}

/// Its protected names can't be inspected.
#[test]
fn writable_root_in_own_closed_directory_is_rejected() {
    let tree = FakeFileSystem::new("/ws/a/sub/.git/")
        .closed("/ws/a")
        .ours("/ws/a");
    let (kind, _) = rejected(&tree, &entries([write("/ws/a/sub")]));
    assert_eq!(kind, FailureKind::Preparation);
    let skipped = write("/ws/a/sub").skip_missing();
    let plan = planned(&tree, &entries([skipped]));
    assert_eq!(plan.access(Path::new("/ws/a/sub/.git")), Access::Read);
}

#[test]
fn pattern_over_unlistable_directory_with_grants_is_rejected() {
    let tree = FakeFileSystem::new("/ws/d/sub/x.pem /ws/.git/ /ws/.agents/ /ws/.codex/ /ws/.aws/")
        .unlisted("/ws/d");
    let (kind, message) = rejected(&tree, &entries([write("/ws/d/sub"), pattern("**/*.pem")]));
    assert_eq!(kind, FailureKind::Intent);
    assert!(message.contains("enter /ws/d,"), "{message}");
}
