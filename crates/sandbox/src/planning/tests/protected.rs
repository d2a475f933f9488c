//! Names that are read-only under every writable root.

use super::*;

fn lines(plan: &Plan) -> Vec<String> {
    told(plan).lines().map(str::to_owned).collect()
}

#[test]
fn they_are_read_only_and_can_not_be_created() {
    let tree = MadeUp::new("/ws/.git/config /ws/.aws /ws/sub/.git/ /usr/");
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
    // Directly under the root, and nowhere else.
    assert_eq!(plan.access(Path::new("/ws/sub/.git")), Access::Write);
}

/// Others are kept from creating them by something that is there just as long as they are.
#[test]
fn one_that_goes_meanwhile_is_absent() {
    let tree = MadeUp::new("/ws/.git/ /usr/").going("/ws/.git");
    let plan = planned(&tree, &policy(vec![read("/"), write("/ws")]));
    let told = lines(&plan);
    assert!(
        told.contains(&"Read /ws/.git absent Protected".to_owned()),
        "{told:?}"
    );
    // Who hides something, or grants it, wants to know.
    let tree = MadeUp::new("/ws/key /usr/").going("/ws").going("/ws/key");
    refused(&tree, &policy(vec![read("/"), write("/ws")]));
    refused(&tree, &policy(vec![read("/"), deny("/ws/key")]));
}

#[test]
fn an_entry_for_one_of_them_says_what_it_is() {
    let tree = MadeUp::new("/ws/.git/ /ws/.aws/ /ws/.codex/memories/");
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
    // What is granted is a writable root as well.
    assert_eq!(access("/ws/.git/.git"), Access::Read);
}

#[test]
fn every_writable_root_has_them() {
    let tree = MadeUp::new("/ws/sub/.git/ /tmp/ /file");
    let entries = vec![
        write("/ws"),
        write("/ws/sub"),
        special(Special::SlashTmp, Access::Write),
        write("/file"),
    ];
    let plan = planned(&tree, &policy(entries));
    let access = |path: &str| plan.access(Path::new(path));
    assert_eq!(access("/ws/sub/.git"), Access::Read);
    assert_eq!(access("/tmp/.codex"), Access::Read);
    assert!(!told(&plan).contains("/file/"));
}

#[test]
fn nothing_is_protected_where_everything_is_writable() {
    let tree = MadeUp::new("/ws/.git/ /.git/ /x");
    let all = special(Special::Root, Access::Write);
    let plan = planned(&tree, &policy(vec![all.clone(), write("/ws")]));
    assert_eq!(lines(&plan), ["Write / dir Entry", "Write /ws dir Entry"]);
    let plan = planned(&tree, &policy(vec![all, write("/ws"), deny("/x")]));
    assert_eq!(plan.access(Path::new("/.git/x")), Access::Read);
    assert_eq!(plan.access(Path::new("/ws/.git/x")), Access::Read);
}

#[test]
fn one_that_is_a_link_can_not_be_protected() {
    let tree = MadeUp::new("/ws/.git>/elsewhere /elsewhere/");
    let (failing, words) = refused(&tree, &policy(vec![write("/ws")]));
    assert_eq!(failing, Failing::Intent);
    assert_eq!(
        words,
        "/ws/.git is a symbolic link in a directory that may be written, \
         so /ws/.git can't be kept as it is"
    );
}

#[test]
fn an_absent_one_keeps_what_is_granted_below_it_from_being_made() {
    let tree = MadeUp::new("/ws/");
    let below = write("/ws/.codex/memories");
    let (failing, _) = refused(&tree, &policy(vec![write("/ws"), below.clone()]));
    assert_eq!(failing, Failing::Preparation);
    let skipped = below.skipping_missing();
    let plan = planned(&tree, &policy(vec![write("/ws"), skipped]));
    assert_eq!(plan.access(Path::new("/ws/.codex")), Access::Read);
}

#[test]
fn a_link_that_anybody_may_have_put_into_a_temporary_directory_stops_nobody() {
    let tree = MadeUp::new("/ws/.git/ /tmp/.aws>nowhere /var/tmp/.git>/ws");
    let temporary = || {
        vec![
            read("/"),
            write("/ws"),
            special(Special::SlashTmp, Access::Write),
            special(Special::Tmpdir, Access::Write),
        ]
    };
    let child = Child {
        tmpdir: Some(Path::new("/var/tmp")),
        ..child()
    };
    let planned = plan(&policy(temporary()), &child, &tree, &Bounds::default()).unwrap();
    let access = |path: &str| planned.access(Path::new(path));
    assert_eq!(access("/tmp/.git"), Access::Read);
    assert_eq!(access("/tmp/.aws"), Access::Write);
    assert_eq!(access("/var/tmp/.aws"), Access::Read);
    let told = told(&planned);
    for link in ["/tmp/.aws", "/var/tmp/.git"] {
        let words = format!(
            "! {link:?} is a symbolic link in a temporary directory and can't be protected\n"
        );
        assert!(told.contains(&words), "{told}");
    }
    // Whoever names the directory itself is told.
    let mut named = temporary();
    named.push(write("/tmp"));
    let refused = plan(&policy(named), &child, &tree, &Bounds::default());
    assert!(matches!(refused, Err(PlanError::LinkInWritable { .. })));
}

#[test]
fn nothing_is_kept_absent_where_nothing_is_ever_made() {
    let tree = MadeUp::new("/ws/ /proc/1/ /sys/fs/");
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
        .filter(|rule| rule.presence == Presence::Absent);
    let absent: Vec<_> = absent.map(|rule| rule.path.parent().unwrap()).collect();
    assert_eq!(absent, [Path::new("/ws"); 4]);
}
