//! Grants, and entries for absent paths.

use super::*;
use crate::policy::Workspace;

fn tree() -> FakeFileSystem {
    FakeFileSystem::new(
        "/ws/src/main.rs /ws/keys/ /tmp/ /data/a/b /etc/passwd /usr/bin/sh /secret/",
    )
}

#[test]
fn most_specific_path_decides_then_deny_then_write_then_read() {
    let entries = vec![
        special(SpecialPath::Root, Access::Read),
        write("/data"),
        read("/data/a"),
        write("/data/a/b"),
        deny("/secret"),
        write("/secret"),
        read("/etc"),
        write("/etc"),
    ];
    let plan = planned(&tree(), &policy(entries));
    let access = |path: &str| plan.access(Path::new(path));
    assert_eq!(access("/usr/bin/sh"), Access::Read);
    assert_eq!(access("/data/new"), Access::Write);
    assert_eq!(access("/data/a/new"), Access::Read);
    assert_eq!(access("/data/a/b"), Access::Write);
    assert_eq!(access("/secret/x"), Access::Deny);
    assert_eq!(access("/etc/passwd"), Access::Write);
}

#[test]
fn path_without_entry_is_hidden() {
    let plan = planned(&tree(), &policy(vec![read("/usr")]));
    assert_eq!(summary(&plan), "Read /usr dir Entry\n");
    assert_eq!(plan.access(Path::new("/etc/passwd")), Access::Deny);
}

#[test]
fn special_paths_are_bound_to_host_and_child() {
    let entries = vec![
        special(project_roots(""), Access::Write),
        special(project_roots("src"), Access::Read),
        special(SpecialPath::Tmpdir, Access::Write),
        special(SpecialPath::SlashTmp, Access::Write),
        special(
            SpecialPath::Unknown {
                path: ":x".into(),
                subpath: None,
            },
            Access::Write,
        ),
    ];
    let mut policy = policy(entries);
    policy.workspace_roots.push("/data".into());
    let context = ProcessDirectories {
        cwd: Path::new("/ws/src"),
        tmpdir: Some(Path::new("/secret")),
    };
    let plan = plan(&policy, &context, &tree(), &PlanLimits::default()).unwrap();
    assert_eq!(plan.cwd, Path::new("/ws/src"));
    let summary: Vec<String> = summary(&plan)
        .lines()
        .filter(|line| !line.contains("Protected"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        summary,
        [
            "Write /data dir Entry",
            "Read /data/src absent Entry",
            "Write /secret dir Entry",
            "Write /tmp dir Entry",
            "Write /ws dir Entry",
            "Read /ws/src dir Entry",
            "! unknown special path \":x\" is ignored",
        ]
    );
}

#[test]
fn special_paths_without_roots_or_tmpdir_grant_nothing() {
    let mut policy = policy(vec![
        special(project_roots(""), Access::Write),
        special(project_roots(".git"), Access::Read),
        special(SpecialPath::Tmpdir, Access::Write),
        pattern("codex-project-roots://**/*.pem"),
    ]);
    policy.workspace_roots.clear();
    let plan = planned(&tree(), &policy);
    assert_eq!(summary(&plan), "");
    let relative = ProcessDirectories {
        tmpdir: Some(Path::new("tmp")),
        ..context()
    };
    let plan = super::plan(&policy, &relative, &tree(), &PlanLimits::default()).unwrap();
    assert_eq!(
        summary(&plan),
        "! TMPDIR \"tmp\" is ignored: it is not an absolute path\n"
    );
}

#[test]
fn subpath_outside_its_root_is_rejected() {
    for below in ["../etc", "/etc", "a/../../etc"] {
        let policy = policy(vec![special(project_roots(below), Access::Read)]);
        let (kind, message) = rejected(&tree(), &policy);
        assert_eq!(kind, FailureKind::Intent);
        assert!(
            message.contains("leads out of the project roots"),
            "{message}"
        );
    }
}

#[test]
fn minimal_paths_depend_on_host_and_network() {
    let tree = FakeFileSystem::new("/usr/lib/libc.so /lib>usr/lib /etc/hosts /etc/ssl/ /ws/");
    let mut policy = policy(vec![special(SpecialPath::Minimal, Access::Read)]);
    let expected = "Read /etc/ssl dir Minimal\nRead /usr dir Minimal\n\
                    Read /usr/lib dir Minimal\nlink /lib -> usr/lib\n";
    assert_eq!(summary(&planned(&tree, &policy)), expected);
    policy.network = Network::Enabled;
    let more = format!("Read /etc/hosts file Minimal\n{expected}");
    assert_eq!(summary(&planned(&tree, &policy)), more);
}

#[test]
fn absent_writable_path_is_an_error_unless_skipped() {
    let absent = write("/ws/out/put");
    let (kind, message) = rejected(&tree(), &policy(vec![read("/"), absent.clone()]));
    assert_eq!(kind, FailureKind::Preparation);
    assert_eq!(message, "/ws/out/put is to be written and does not exist");
    let skipped = absent.clone().skip_missing();
    let plan = planned(&tree(), &policy(vec![read("/"), skipped]));
    assert_eq!(summary(&plan), "Read / dir Entry\n");
    // Below a writable path it needs no rule.
    let plan = planned(&tree(), &policy(vec![write("/ws"), absent]));
    assert_eq!(plan.access(Path::new("/ws/out/put")), Access::Write);
    assert!(!summary(&plan).contains("/ws/out"), "{}", summary(&plan));
}

#[test]
fn absent_temporary_directory_is_a_warning() {
    let tree = FakeFileSystem::new("/ws/");
    let context = ProcessDirectories {
        tmpdir: Some(Path::new("/gone")),
        ..context()
    };
    let policy = Workspace::default().policy(Path::new("/ws"));
    let plan = plan(&policy, &context, &tree, &PlanLimits::default()).unwrap();
    assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
    assert_eq!(plan.access(Path::new("/gone")), Access::Read);
}

#[test]
fn absent_unwritable_path_is_masked() {
    let entries = vec![
        special(SpecialPath::Root, Access::Read),
        write("/ws"),
        read("/ws/absent"),
        deny("/ws/src/deep/er").skip_missing(),
        deny("/etc/absent"),
        read("/ws/src/main.rs/below"),
    ];
    let plan = planned(&tree(), &policy(entries));
    let summary: Vec<String> = summary(&plan)
        .lines()
        .filter(|line| !line.contains("Protected"))
        .map(str::to_owned)
        .collect();
    // /etc/absent needs no rule: /etc isn't writable.
    assert_eq!(
        summary,
        [
            "Read / dir Entry",
            "Write /ws dir Entry",
            "Read /ws/absent absent Entry",
            "Write /ws/src dir Pinned",
            "Deny /ws/src/deep absent Entry",
            "Read /ws/src/main.rs file Entry",
            "! \"/ws/src/main.rs\" is made read-only: \"/ws/src/main.rs/below\" must not be created",
        ]
    );
}

#[test]
fn unreachable_path_needs_no_rule() {
    let tree = FakeFileSystem::new("/ws/ /closed/secret").closed("/closed");
    let entries = vec![read("/"), write("/ws"), deny("/closed/secret/x")];
    let plan = planned(&tree, &policy(entries));
    assert_eq!(plan.warnings.len(), 1);
    let (kind, _) = rejected(&tree, &policy(vec![write("/closed/secret/x")]));
    assert_eq!(kind, FailureKind::Preparation);
}

#[test]
fn directories_above_a_denied_path_are_pinned() {
    let tree = FakeFileSystem::new("/ws/a/b/c/secret /ws/a/b/open/ /ws/a/x/");
    let entries = vec![write("/ws"), deny("/ws/a/b/c"), write("/ws/a/b/open")];
    let plan = planned(&tree, &policy(entries));
    let pinned: Vec<_> = plan
        .rules
        .iter()
        .filter(|rule| rule.origin == crate::Origin::Pinned)
        .map(|rule| rule.path.to_str().unwrap())
        .collect();
    assert_eq!(pinned, ["/ws/a", "/ws/a/b"]);
}

#[test]
fn directories_above_a_nested_writable_root_are_pinned() {
    let tree = FakeFileSystem::new("/tmp/x/y/project/.git/");
    let entries = vec![write("/tmp"), write("/tmp/x/y/project")];
    let plan = planned(&tree, &policy(entries));
    let summary = summary(&plan);
    assert!(summary.contains("Write /tmp/x dir Pinned\n"), "{summary}");
    assert!(summary.contains("Write /tmp/x/y dir Pinned\n"), "{summary}");
}

#[test]
fn unrestricted_policy_grants_everything() {
    let policy = Policy {
        file_system: FileSystem::Unrestricted,
        ..policy(Vec::new())
    };
    assert_eq!(summary(&planned(&tree(), &policy)), "Write / dir Entry\n");
}

#[test]
fn too_many_entries_or_rules_are_rejected() {
    let entries = vec![read("/usr"); 5000];
    let (kind, message) = rejected(&tree(), &policy(entries));
    assert_eq!(kind, FailureKind::Intent);
    assert_eq!(
        message,
        "the policy has 5000 entries, and the limit is 4096"
    );
    let many = (0..2001).map(|n| format!("/ws/{n}")).collect::<Vec<_>>();
    let entries = many.iter().map(|path| deny(path)).chain([write("/ws")]);
    let policy = policy(entries.collect());
    let (kind, message) = rejected(&FakeFileSystem::new(&many.join(" ")), &policy);
    assert_eq!(kind, FailureKind::Intent);
    assert!(message.contains("more than 2000 rules"), "{message}");
}

#[test]
fn absent_denied_path_stays_denied_in_any_order() {
    let tree = FakeFileSystem::new("/ws/");
    for entries in [
        vec![write("/ws"), deny("/ws/a/b"), read("/ws/a")],
        vec![write("/ws"), read("/ws/a"), deny("/ws/a/b")],
    ] {
        let plan = planned(&tree, &policy(entries));
        assert!(summary(&plan).contains("Deny /ws/a absent Entry\n"));
    }
}
