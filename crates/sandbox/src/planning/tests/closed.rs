//! Directories that let nobody through who runs as we do.

use super::*;

fn entries(more: impl IntoIterator<Item = Entry>) -> Policy {
    let mut entries = vec![read("/"), write("/ws")];
    entries.extend(more);
    policy(entries)
}

fn tree() -> MadeUp {
    MadeUp::new("/ws/a/d/secret /ws/a/open /ws/.git/ /ws/.agents/ /ws/.codex/ /ws/.aws/")
}

/// Without the names that are protected anyway.
fn lines(plan: &Plan) -> Vec<String> {
    let told = told(plan);
    let lines = told.lines().filter(|line| !line.ends_with("Protected"));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_is_denied_in_one_of_ours_is_denied_with_all_of_it() {
    let tree = tree().closed("/ws/a/d").ours("/ws/a/d");
    let below = project_roots("a/d/secret");
    for (entry, why, path) in [
        (deny("/ws/a/d/secret"), "Entry", "/ws/a/d/secret"),
        (deny("/ws/a/d/x/y"), "Entry", "/ws/a/d/x/y"),
        (special(below, Access::Deny), "Entry", "/ws/a/d/secret"),
        (pattern("a/d/secret"), "Glob", "/ws/a/d"),
        (pattern("a/d/e/*"), "Glob", "/ws/a/d"),
        (pattern("a/d/*"), "Glob", "/ws/a/d"),
        (pattern("**/secret"), "Glob", "/ws/a/d"),
    ] {
        let told = format!("{entry:?}");
        let plan = planned(&tree, &entries([entry]));
        let denied = format!("Deny /ws/a/d dir {why}");
        let warning = format!(
            "! {path:?} can't be looked at, so what holds for it holds for all of \"/ws/a/d\""
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
            "{told}"
        );
    }
}

#[test]
fn what_is_read_only_in_one_of_ours_makes_it_so() {
    let tree = tree().closed("/ws/a/d").ours("/ws/a/d");
    let plan = planned(&tree, &entries([read("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Read);
    // The stricter one goes first.
    let both = [read("/ws/a/d/secret"), deny("/ws/a/d/x")];
    let plan = planned(&tree, &entries(both));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
}

/// Names can be listed that can't be looked at, and the other way round.
#[test]
fn half_closed_is_closed_to_patterns() {
    let unlisted = tree().unlisted("/ws/a/d").ours("/ws/a/d");
    let plan = planned(&unlisted, &entries([pattern("**/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
    let plan = planned(&unlisted, &entries([deny("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Write);
    assert_eq!(plan.access(Path::new("/ws/a/d/secret")), Access::Deny);
}

#[test]
fn the_first_that_is_closed_is_kept() {
    let tree = MadeUp::new("/ws/a/b/c/secret")
        .closed("/ws/a")
        .ours("/ws/a")
        .ours("/ws/a/b");
    for entry in [deny("/ws/a/b/c/secret"), pattern("a/b/*")] {
        let plan = planned(&tree, &entries([entry]));
        assert_eq!(plan.access(Path::new("/ws/a")), Access::Deny);
    }
}

#[test]
fn one_of_somebody_else_s_is_left_alone_unless_it_could_be_replaced() {
    let theirs = tree().closed("/ws/a/d");
    let plan = planned(&theirs, &entries([deny("/ws/a/d/secret")]));
    assert_eq!(plan.access(Path::new("/ws/a/d")), Access::Deny);
    let plan = planned(&theirs, &entries([pattern("**/secret")]));
    assert_eq!(
        lines(&plan),
        ["Read / dir Entry", "Write /ws dir Entry"],
        "patterns are about what is there"
    );
    let elsewhere = MadeUp::new("/ws/ /theirs/key").closed("/theirs");
    let plan = planned(&elsewhere, &entries([deny("/theirs/key")]));
    assert_eq!(plan.access(Path::new("/theirs")), Access::Read);
    let told = told(&plan);
    assert!(
        told.contains("! \"/theirs/key\" is out of reach for the user of this server"),
        "{told}"
    );
}

/// Another process may open it while this one runs.
#[test]
fn one_of_ours_is_denied_where_it_can_only_be_read_as_well() {
    let tree = MadeUp::new("/ws/ /srv/d/key")
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
fn one_that_is_granted_itself_can_not_be_kept_from_anybody() {
    let tree = MadeUp::new("/ws/a/secret").closed("/ws/a").ours("/ws/a");
    for entry in [deny("/ws/a/secret"), pattern("**/secret")] {
        let (failing, words) = refused(&tree, &entries([write("/ws/a"), entry]));
        assert_eq!(failing, Failing::Intent);
        assert_eq!(
            words,
            "/ws/a is closed to the user of this server, \
             so what is asked for in it can't be kept"
        );
    }
}

/// Its protected names can't be seen to.
#[test]
fn a_root_in_one_of_ours_is_not_granted() {
    let tree = MadeUp::new("/ws/a/sub/.git/").closed("/ws/a").ours("/ws/a");
    let (failing, _) = refused(&tree, &entries([write("/ws/a/sub")]));
    assert_eq!(failing, Failing::Preparation);
    let skipped = write("/ws/a/sub").skipping_missing();
    let plan = planned(&tree, &entries([skipped]));
    assert_eq!(plan.access(Path::new("/ws/a/sub/.git")), Access::Read);
}

#[test]
fn a_pattern_that_can_not_look_is_no_pattern_for_what_is_granted_below() {
    let tree = MadeUp::new("/ws/d/sub/x.pem /ws/.git/ /ws/.agents/ /ws/.codex/ /ws/.aws/")
        .unlisted("/ws/d");
    let (failing, words) = refused(&tree, &entries([write("/ws/d/sub"), pattern("**/*.pem")]));
    assert_eq!(failing, Failing::Intent);
    assert!(words.starts_with("/ws/d is closed"), "{words}");
}
