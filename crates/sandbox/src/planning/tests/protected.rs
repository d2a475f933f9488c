//! Names that are read-only below every writable root.

use super::*;

fn lines(plan: &Plan) -> Vec<String> {
    summary(plan).lines().map(str::to_owned).collect()
}

#[test]
fn protected_names_are_read_only_or_masked() {
    let tree = FakeFileSystem::new("/ws/.git/config /ws/.aws /ws/sub/.git/ /usr/");
    let plan = planned(&tree, &policy(vec![read("/"), write("/ws")]));
    assert_eq!(
        lines(&plan),
        [
            "Read / dir Entry",
            "Write /ws dir Entry",
            "Read /ws/.agents absent Protected",
            "Read /ws/.aws file Protected",
            "Read /ws/.codex absent Protected",
            "Read /ws/.git dir Protected",
        ]
    );
    // Only directly below the root.
    assert_eq!(plan.access(Path::new("/ws/sub/.git")), Access::Write);
}

/// It was another process's placeholder.
#[test]
fn protected_name_removed_during_planning_is_absent() {
    let tree = FakeFileSystem::new("/ws/.git/ /usr/").vanishing("/ws/.git");
    let plan = planned(&tree, &policy(vec![read("/"), write("/ws")]));
    let summary = lines(&plan);
    assert!(
        summary.contains(&"Read /ws/.git absent Protected".to_owned()),
        "{summary:?}"
    );
    // For grants and denials it is an error.
    let tree = FakeFileSystem::new("/ws/key /usr/")
        .vanishing("/ws")
        .vanishing("/ws/key");
    rejected(&tree, &policy(vec![read("/"), write("/ws")]));
    rejected(&tree, &policy(vec![read("/"), deny("/ws/key")]));
}

#[test]
fn entry_for_a_protected_name_has_precedence() {
    let tree = FakeFileSystem::new("/ws/.git/ /ws/.aws/ /ws/.codex/memories/");
    let entries = vec![
        write("/ws"),
        write("/ws/.git"),
        write("/ws/.agents"),
        deny("/ws/.aws"),
        write("/ws/.codex/memories"),
    ];
    let plan = planned(&tree, &policy(entries));
    let access = |path: &str| plan.access(Path::new(path));
    assert_eq!(access("/ws/.git/config"), Access::Write);
    assert_eq!(access("/ws/.agents"), Access::Write);
    assert_eq!(access("/ws/.aws/x"), Access::Deny);
    assert_eq!(access("/ws/.codex/config"), Access::Read);
    assert_eq!(access("/ws/.codex/memories/x"), Access::Write);
    // A granted name is a writable root itself.
    assert_eq!(access("/ws/.git/.git"), Access::Read);
}

#[test]
fn every_writable_root_has_protected_names() {
    let tree = FakeFileSystem::new("/ws/sub/.git/ /tmp/ /file");
    let entries = vec![
        write("/ws"),
        write("/ws/sub"),
        special(SpecialPath::SlashTmp, Access::Write),
        write("/file"),
    ];
    let plan = planned(&tree, &policy(entries));
    let access = |path: &str| plan.access(Path::new(path));
    assert_eq!(access("/ws/sub/.git"), Access::Read);
    assert_eq!(access("/tmp/.codex"), Access::Read);
    assert!(!summary(&plan).contains("/file/"));
}

#[test]
fn nothing_is_protected_where_everything_is_writable() {
    let tree = FakeFileSystem::new("/ws/.git/ /.git/ /x");
    let all = special(SpecialPath::Root, Access::Write);
    let plan = planned(&tree, &policy(vec![all.clone(), write("/ws")]));
    assert_eq!(lines(&plan), ["Write / dir Entry", "Write /ws dir Entry"]);
    let plan = planned(&tree, &policy(vec![all, write("/ws"), deny("/x")]));
    assert_eq!(plan.access(Path::new("/.git/x")), Access::Read);
    assert_eq!(plan.access(Path::new("/ws/.git/x")), Access::Read);
}

#[test]
fn protected_name_that_is_a_link_is_rejected() {
    let tree = FakeFileSystem::new("/ws/.git>/elsewhere /elsewhere/");
    let (kind, message) = rejected(&tree, &policy(vec![write("/ws")]));
    assert_eq!(kind, FailureKind::Intent);
    assert_eq!(
        message,
        "/ws/.git is a symbolic link in a writable directory, so /ws/.git can't be enforced"
    );
}

#[test]
fn grant_below_absent_protected_name_is_an_error_unless_skipped() {
    let tree = FakeFileSystem::new("/ws/");
    let below = write("/ws/.codex/memories");
    let (kind, _) = rejected(&tree, &policy(vec![write("/ws"), below.clone()]));
    assert_eq!(kind, FailureKind::Preparation);
    let skipped = below.skip_missing();
    let plan = planned(&tree, &policy(vec![write("/ws"), skipped]));
    assert_eq!(plan.access(Path::new("/ws/.codex")), Access::Read);
}

#[test]
fn protected_link_in_temporary_directory_is_a_warning() {
    let tree = FakeFileSystem::new("/ws/.git/ /tmp/.aws>nowhere /var/tmp/.git>/ws");
    let temporary = || {
        vec![
            read("/"),
            write("/ws"),
            special(SpecialPath::SlashTmp, Access::Write),
            special(SpecialPath::Tmpdir, Access::Write),
        ]
    };
    let context = ProcessDirectories {
        tmpdir: Some(Path::new("/var/tmp")),
        ..context()
    };
    let planned = plan(
        &policy(temporary()),
        &context,
        &tree,
        &PlanLimits::default(),
    )
    .unwrap();
    let access = |path: &str| planned.access(Path::new(path));
    assert_eq!(access("/tmp/.git"), Access::Read);
    assert_eq!(access("/tmp/.aws"), Access::Write);
    assert_eq!(access("/var/tmp/.aws"), Access::Read);
    let summary = summary(&planned);
    for link in ["/tmp/.aws", "/var/tmp/.git"] {
        let warning = format!(
            "! {link:?} is not protected: it is a symbolic link in a temporary directory\n"
        );
        assert!(summary.contains(&warning), "{summary}");
    }
    // With an entry for the directory itself it is an error.
    let mut named = temporary();
    named.push(write("/tmp"));
    let rejected = plan(&policy(named), &context, &tree, &PlanLimits::default());
    assert!(matches!(rejected, Err(PlanError::LinkInWritable { .. })));
}

#[test]
fn nothing_is_masked_in_kernel_file_systems() {
    let tree = FakeFileSystem::new("/ws/ /proc/1/ /sys/fs/");
    let entries = vec![
        write("/ws"),
        write("/proc"),
        write("/sys/fs"),
        deny("/proc/none"),
    ];
    let plan = planned(&tree, &policy(entries));
    let mut absent = plan.rules.iter();
    let absent = absent
        .by_ref()
        .filter(|rule| rule.presence == PathState::Absent);
    let absent: Vec<_> = absent.map(|rule| rule.path.parent().unwrap()).collect();
    assert_eq!(absent, [Path::new("/ws"); 4]);
}
