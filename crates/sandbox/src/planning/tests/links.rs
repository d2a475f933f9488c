//! Paths through symbolic links.

use std::time::SystemTime;

use super::*;

#[test]
fn rules_apply_to_link_targets() {
    let tree = FakeFileSystem::new("/usr/me/project>/srv/p /srv/p/src/ /srv/p/.git/");
    let mut policy = policy(vec![
        special(project_roots(""), Access::Write),
        special(project_roots(".git"), Access::Read).skip_missing(),
    ]);
    policy.workspace_roots = vec!["/usr/me/project".into()];
    let context = ProcessDirectories {
        cwd: Path::new("/usr/me/project/src"),
        tmpdir: None,
    };
    let plan = plan(&policy, &context, &tree, &PlanLimits::default()).unwrap();
    assert_eq!(plan.cwd, Path::new("/srv/p/src"));
    assert_eq!(plan.access(Path::new("/srv/p/src")), Access::Write);
    assert_eq!(plan.access(Path::new("/srv/p/.git")), Access::Read);
    assert_eq!(plan.access(Path::new("/usr/me/project")), Access::Deny);
    // The link is created inside.
    let summary = summary(&plan);
    assert_eq!(summary.matches("link ").count(), 1, "{summary}");
    assert!(
        summary.contains("link /usr/me/project -> /srv/p\n"),
        "{summary}"
    );
}

#[test]
fn visible_links_are_not_created() {
    let tree = FakeFileSystem::new("/link>/srv /srv/");
    let plan = planned(&tree, &policy(vec![read("/"), write("/link")]));
    assert_eq!(plan.links, []);
    assert_eq!(plan.access(Path::new("/srv/x")), Access::Write);
}

#[test]
fn denied_link_denies_its_target() {
    let tree = FakeFileSystem::new("/var/run>../run /run/docker.sock");
    let entries = vec![read("/"), deny("/var/run/docker.sock")];
    let plan = planned(&tree, &policy(entries));
    assert_eq!(plan.access(Path::new("/run/docker.sock")), Access::Deny);
}

#[test]
fn replaceable_links_are_rejected() {
    let tree = FakeFileSystem::new("/ws/out>/home /home/ /ws/a>b /ws/b/");
    for entry in [write("/ws/out"), read("/ws/a"), deny("/ws/a/x")] {
        let (kind, message) = rejected(&tree, &policy(vec![write("/ws"), entry]));
        assert_eq!(kind, FailureKind::Intent);
        assert!(message.contains("symbolic link in a writable directory"));
    }
    // Links in read-only directories are fine.
    let plan = planned(&tree, &policy(vec![read("/ws"), write("/ws/out")]));
    assert_eq!(plan.access(Path::new("/home/x")), Access::Write);
}

#[test]
fn link_loop_is_an_error() {
    let tree = FakeFileSystem::new("/a>/b /b>/a /ws/");
    let (kind, message) = rejected(&tree, &policy(vec![read("/a")]));
    assert_eq!(kind, FailureKind::Preparation);
    assert_eq!(message, "too many symbolic links on the way to /a");
}

#[test]
fn dots_in_a_link_are_relative_to_its_directory() {
    let tree = FakeFileSystem::new("/a/b/link>../../c/./d /c/d/file /ws/");
    let plan = planned(&tree, &policy(vec![read("/a/b/link/file")]));
    assert_eq!(plan.rules[0].path, Path::new("/c/d/file"));
    assert_eq!(plan.rules[0].presence, PathState::File);
}

/// Plans after another plan of the same server.
fn planned_after(
    tree: &FakeFileSystem,
    earlier: &Policy,
    policy: &Policy,
) -> Result<Plan, PlanError> {
    let mut granted = GrantedRoots::default();
    granted.record(&planned(tree, earlier), SystemTime::now());
    let granted = Arc::new(granted);
    let server = ServerPaths {
        granted: &|| Ok(Arc::clone(&granted)),
        own: &[],
    };
    crate::planning::plan(policy, &context(), &server, tree, &PlanLimits::default())
}

#[test]
fn link_in_an_earlier_grant_is_rejected() {
    let tree =
        FakeFileSystem::new("/ws/app>/users/me /users/me/ /usr/ws>/ws /srv/app>/users/me /tmp/");
    let earlier = policy(vec![read("/"), write("/ws"), write("/usr")]);
    for entry in [
        write("/ws/app"),
        read("/ws/app/x"),
        deny("/ws/app/x"),
        write("/usr/ws/app"),
    ] {
        let error = planned_after(&tree, &earlier, &policy(vec![entry])).unwrap_err();
        assert_eq!(error.failure_kind(), FailureKind::Intent);
        let message = error.to_string();
        assert!(message.contains("/ws/app is a symbolic link"), "{message}");
        assert!(message.contains("earlier sandboxed process"), "{message}");
    }
    let mut elsewhere = policy(vec![read("/"), write("/tmp"), pattern("*/*.pem")]);
    elsewhere.cwd = "/ws/app".into();
    assert!(
        planned_after(&tree, &earlier, &elsewhere).is_err(),
        "pattern"
    );
    // Nothing could have replaced these links.
    for path in ["/srv/app", "/usr/ws"] {
        let granted = planned_after(&tree, &earlier, &policy(vec![write(path)]));
        assert!(granted.is_ok(), "{granted:?}");
    }
}

#[test]
fn link_from_before_the_first_grant_is_followed() {
    let tree = "/bin>/opt/bin /opt/bin/ /me/src/link>/srv /srv/ /ws/ /tmp/link>/srv";
    let earlier = Policy {
        file_system: FileSystem::Unrestricted,
        ..policy(Vec::new())
    };
    let old = ["/bin", "/me", "/me/src", "/me/src/link"];
    let tree = FakeFileSystem::new(tree).old(&old);
    for path in ["/bin", "/me/src/link"] {
        let granted = planned_after(&tree, &earlier, &policy(vec![write(path)]));
        assert!(granted.is_ok(), "{path}: {granted:?}");
    }
    let planted = planned_after(&tree, &earlier, &policy(vec![write("/tmp/link")]));
    assert!(matches!(planted, Err(PlanError::LinkInGranted { .. })));
}

/// A process can rename a directory with an old link in it.
#[test]
fn old_link_in_a_renamed_directory_is_rejected() {
    let earlier = policy(vec![read("/"), write("/ws")]);
    let next = policy(vec![write("/ws/a/b/link")]);
    let tree = || FakeFileSystem::new("/ws/a/b/link>/srv /srv/");
    let renamed = [
        tree().old(&["/ws/a/b/link", "/ws/a/b"]),
        tree().old(&["/ws/a/b/link", "/ws/a"]),
        tree().old(&["/ws/a/b", "/ws/a"]),
    ];
    for tree in renamed {
        let planted = planned_after(&tree, &earlier, &next);
        assert!(matches!(planted, Err(PlanError::LinkInGranted { .. })));
    }
    // The granted directory itself can't be renamed.
    let old = tree().old(&["/ws/a/b/link", "/ws/a/b", "/ws/a"]);
    let granted = planned_after(&old, &earlier, &next);
    assert!(granted.is_ok(), "{granted:?}");
}

#[test]
fn link_of_another_user_in_a_shared_directory_is_rejected() {
    let tree = FakeFileSystem::new("/tmp/mine>/home /home/").foreign("/tmp/mine");
    let (kind, message) = rejected(&tree, &policy(vec![write("/tmp/mine")]));
    assert_eq!(kind, FailureKind::Intent);
    assert!(
        message.contains("another user's symbolic link"),
        "{message}"
    );
}
