//! What is granted, and what becomes of what isn't there.

use super::*;
use crate::policy::Workspace;

fn tree() -> MadeUp {
    MadeUp::new("/ws/src/main.rs /ws/keys/ /tmp/ /data/a/b /etc/passwd /usr/bin/sh /secret/")
}

#[test]
fn the_most_specific_path_decides_and_deny_goes_before_write_before_read() {
    let entries = vec![
        special(Special::Root, Access::Read),
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
fn what_nobody_names_is_not_there() {
    let plan = planned(&tree(), &policy(vec![read("/usr")]));
    assert_eq!(told(&plan), "Read /usr dir Entry\n");
    assert_eq!(plan.access(Path::new("/etc/passwd")), Access::Deny);
}

#[test]
fn symbolic_places_are_those_of_this_host_and_of_the_child() {
    let entries = vec![
        special(project_roots(""), Access::Write),
        special(project_roots("src"), Access::Read),
        special(Special::Tmpdir, Access::Write),
        special(Special::SlashTmp, Access::Write),
        special(Special::Unknown(":x".into()), Access::Write),
    ];
    let mut policy = policy(entries);
    policy.workspace_roots.push("/data".into());
    let child = Child {
        cwd: Path::new("/ws/src"),
        tmpdir: Some(Path::new("/secret")),
    };
    let plan = plan(&policy, &child, &tree(), &Bounds::default()).unwrap();
    assert_eq!(plan.cwd, Path::new("/ws/src"));
    let told: Vec<String> = told(&plan)
        .lines()
        .filter(|line| !line.contains("Protected"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        told,
        [
            "Write /data dir Entry",
            "Read /data/src absent Entry",
            "Write /secret dir Entry",
            "Write /tmp dir Entry",
            "Write /ws dir Entry",
            "Read /ws/src dir Entry",
            "! the special path \":x\" isn't known here and is ignored",
        ]
    );
}

#[test]
fn without_roots_or_a_tmpdir_there_is_nothing_to_bind() {
    let mut policy = policy(vec![
        special(project_roots(""), Access::Write),
        special(project_roots(".git"), Access::Read),
        special(Special::Tmpdir, Access::Write),
        pattern("codex-project-roots://**/*.pem"),
    ]);
    policy.workspace_roots.clear();
    let plan = planned(&tree(), &policy);
    assert_eq!(told(&plan), "");
    let relative = Child {
        tmpdir: Some(Path::new("tmp")),
        ..child()
    };
    let plan = super::plan(&policy, &relative, &tree(), &Bounds::default()).unwrap();
    assert_eq!(
        told(&plan),
        "! TMPDIR is \"tmp\", which is not an absolute path, and is ignored\n"
    );
}

#[test]
fn a_subpath_stays_below_its_root() {
    for below in ["../etc", "/etc", "a/../../etc"] {
        let policy = policy(vec![special(project_roots(below), Access::Read)]);
        let (failing, words) = refused(&tree(), &policy);
        assert_eq!(failing, Failing::Intent);
        assert!(words.contains("leads out of the project roots"), "{words}");
    }
}

#[test]
fn the_minimum_is_what_the_host_has_of_it_and_more_with_a_network() {
    let tree = MadeUp::new("/usr/lib/libc.so /lib>usr/lib /etc/hosts /etc/ssl/ /ws/");
    let mut policy = policy(vec![special(Special::Minimal, Access::Read)]);
    let expected = "Read /etc/ssl dir Minimal\nRead /usr dir Minimal\n\
                    Read /usr/lib dir Minimal\nlink /lib -> usr/lib\n";
    assert_eq!(told(&planned(&tree, &policy)), expected);
    policy.network = Network::Enabled;
    let more = format!("Read /etc/hosts file Minimal\n{expected}");
    assert_eq!(told(&planned(&tree, &policy)), more);
}

#[test]
fn what_is_to_be_written_has_to_exist_unless_its_absence_is_fine() {
    let absent = write("/ws/out/put");
    let (failing, words) = refused(&tree(), &policy(vec![read("/"), absent.clone()]));
    assert_eq!(failing, Failing::Preparation);
    assert_eq!(words, "/ws/out/put is to be written and does not exist");
    let skipped = absent.clone().skipping_missing();
    let plan = planned(&tree(), &policy(vec![read("/"), skipped]));
    assert_eq!(told(&plan), "Read / dir Entry\n");
    // Where it may be created it needs no rule.
    let plan = planned(&tree(), &policy(vec![write("/ws"), absent]));
    assert_eq!(plan.access(Path::new("/ws/out/put")), Access::Write);
    assert!(!told(&plan).contains("/ws/out"), "{}", told(&plan));
}

#[test]
fn a_temporary_directory_that_is_gone_is_only_worth_a_word() {
    let tree = MadeUp::new("/ws/");
    let child = Child {
        tmpdir: Some(Path::new("/gone")),
        ..child()
    };
    let policy = Workspace::default().policy(Path::new("/ws"));
    let plan = plan(&policy, &child, &tree, &Bounds::default()).unwrap();
    assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
    assert_eq!(plan.access(Path::new("/gone")), Access::Read);
}

#[test]
fn what_is_absent_and_may_not_be_written_can_not_be_created() {
    let entries = vec![
        special(Special::Root, Access::Read),
        write("/ws"),
        read("/ws/absent"),
        deny("/ws/src/deep/er").skipping_missing(),
        deny("/etc/absent"),
        read("/ws/src/main.rs/below"),
    ];
    let plan = planned(&tree(), &policy(entries));
    let told: Vec<String> = told(&plan)
        .lines()
        .filter(|line| !line.contains("Protected"))
        .map(str::to_owned)
        .collect();
    // The last one needs no rule: nobody may write /etc in the first place.
    assert_eq!(
        told,
        [
            "Read / dir Entry",
            "Write /ws dir Entry",
            "Read /ws/absent absent Entry",
            "Write /ws/src dir Pinned",
            "Deny /ws/src/deep absent Entry",
            "Read /ws/src/main.rs file Entry",
            "! \"/ws/src/main.rs/below\" can't be kept from appearing unless \
             \"/ws/src/main.rs\" is read-only, so it is",
        ]
    );
}

#[test]
fn what_nobody_can_reach_needs_no_rule() {
    let tree = MadeUp::new("/ws/ /closed/secret").closed("/closed");
    let entries = vec![read("/"), write("/ws"), deny("/closed/secret/x")];
    let plan = planned(&tree, &policy(entries));
    assert_eq!(plan.warnings.len(), 1);
    let (failing, _) = refused(&tree, &policy(vec![write("/closed/secret/x")]));
    assert_eq!(failing, Failing::Preparation);
}

#[test]
fn directories_on_the_way_to_a_hole_stay_where_they_are() {
    let tree = MadeUp::new("/ws/a/b/c/secret /ws/a/b/open/ /ws/a/x/");
    let entries = vec![write("/ws"), deny("/ws/a/b/c"), write("/ws/a/b/open")];
    let plan = planned(&tree, &policy(entries));
    let pinned: Vec<_> = plan
        .rules
        .iter()
        .filter(|rule| rule.why == crate::Why::Pinned)
        .map(|rule| rule.path.to_str().unwrap())
        .collect();
    assert_eq!(pinned, ["/ws/a", "/ws/a/b"]);
}

#[test]
fn a_project_in_a_writable_directory_stays_where_it_is() {
    let tree = MadeUp::new("/tmp/x/y/project/.git/");
    let entries = vec![write("/tmp"), write("/tmp/x/y/project")];
    let plan = planned(&tree, &policy(entries));
    let told = told(&plan);
    assert!(told.contains("Write /tmp/x dir Pinned\n"), "{told}");
    assert!(told.contains("Write /tmp/x/y dir Pinned\n"), "{told}");
}

#[test]
fn everything_may_be_everything() {
    let policy = Policy {
        file_system: FileSystem::Unrestricted,
        ..policy(Vec::new())
    };
    assert_eq!(told(&planned(&tree(), &policy)), "Write / dir Entry\n");
}

#[test]
fn more_than_anybody_needs_is_refused() {
    let entries = vec![read("/usr"); 5000];
    let (failing, words) = refused(&tree(), &policy(entries));
    assert_eq!(failing, Failing::Intent);
    assert_eq!(words, "it has 5000 entries and 4096 is the limit");
    let many = (0..2001).map(|n| format!("/ws/{n}")).collect::<Vec<_>>();
    let entries = many.iter().map(|path| deny(path)).chain([write("/ws")]);
    let policy = policy(entries.collect());
    let (failing, words) = refused(&MadeUp::new(&many.join(" ")), &policy);
    assert_eq!(failing, Failing::Intent);
    assert!(words.starts_with("more than 2000 paths"), "{words}");
}

#[test]
fn what_is_denied_and_absent_stays_denied() {
    let tree = MadeUp::new("/ws/");
    for entries in [
        vec![write("/ws"), deny("/ws/a/b"), read("/ws/a")],
        vec![write("/ws"), read("/ws/a"), deny("/ws/a/b")],
    ] {
        let plan = planned(&tree, &policy(entries));
        assert!(told(&plan).contains("Deny /ws/a absent Entry\n"));
    }
}
