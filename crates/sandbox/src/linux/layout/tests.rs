use std::collections::BTreeSet;

use super::*;
use crate::Link;

/// A host where everything exists that isn't named.
#[derive(Default)]
struct Imagined {
    missing: BTreeSet<PathBuf>,
    placeholders: BTreeSet<PathBuf>,
    /// Where only others may create something.
    closed: BTreeSet<PathBuf>,
}

impl Host for Imagined {
    fn exists(&self, path: &Path) -> bool {
        !path.ancestors().any(|part| self.missing.contains(part))
    }

    fn is_open(&self, directory: &Path) -> bool {
        !self.closed.contains(directory)
    }

    fn is_placeholder(&self, path: &Path) -> bool {
        self.placeholders.contains(path)
    }
}

fn rule(access: Access, path: &str, presence: Presence) -> Rule {
    Rule {
        path: path.into(),
        access,
        presence,
        why: Why::Entry,
    }
}

fn read(path: &str) -> Rule {
    rule(Access::Read, path, Presence::Directory)
}

fn write(path: &str) -> Rule {
    rule(Access::Write, path, Presence::Directory)
}

fn deny(path: &str) -> Rule {
    rule(Access::Deny, path, Presence::Directory)
}

fn plan(rules: impl Into<Vec<Rule>>) -> Plan {
    Plan {
        rules: rules.into(),
        links: Vec::new(),
        network: Network::Restricted,
        cwd: "/".into(),
        warnings: Vec::new(),
    }
}

/// The arguments behind what is always said, an option to a line.
fn said(plan: &Plan, host: &Imagined) -> String {
    let mut text = String::new();
    let layout = lay_out(plan, host);
    for word in &layout.arguments[ALWAYS.len()..] {
        let word = word.to_str().expect("all of it is text");
        if word.starts_with("--") && !text.is_empty() {
            text.pop();
            text.push('\n');
        }
        text.push_str(word);
        text.push(' ');
    }
    text.trim_end().to_owned()
}

fn absent_of(plan: &Plan, host: &Imagined) -> Vec<PathBuf> {
    lay_out(plan, host).absent
}

#[test]
fn a_workspace_under_a_readable_root() {
    let mut git = read("/srv/p/.git");
    git.why = Why::Protected;
    let plan = plan([read("/"), write("/srv/p"), git, read("/usr")]);
    insta::assert_snapshot!(said(&plan, &Imagined::default()), @r"
    --unshare-net
    --ro-bind / /
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --bind /srv/p /srv/p
    --ro-bind /srv/p/.git /srv/p/.git
    --remount-ro /dev
    --remount-ro /proc
    ");
}

#[test]
fn without_a_root_there_is_only_what_is_granted() {
    let mut plan = plan([read("/usr/lib"), write("/srv/p"), deny("/etc")]);
    plan.network = Network::Enabled;
    plan.links.push(Link {
        path: "/lib".into(),
        target: "usr/lib".into(),
    });
    insta::assert_snapshot!(said(&plan, &Imagined::default()), @r"
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --bind /srv/p /srv/p
    --ro-bind /usr/lib /usr/lib
    --symlink usr/lib /lib
    --remount-ro /
    --remount-ro /dev
    --remount-ro /proc
    ");
}

#[test]
fn what_is_denied_is_covered_and_what_is_granted_in_it_can_be_reached() {
    let mut key = deny("/srv/p/key.pem");
    key.presence = Presence::File;
    key.why = Why::Glob;
    let plan = plan([
        read("/"),
        deny("/data"),
        write("/data/me/p"),
        deny("/opt"),
        write("/srv/p"),
        key,
    ]);
    insta::assert_snapshot!(said(&plan, &Imagined::default()), @r"
    --unshare-net
    --ro-bind / /
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --perms 0111
    --tmpfs /data
    --bind /data/me/p /data/me/p
    --perms 0000
    --tmpfs /opt
    --bind /srv/p /srv/p
    --ro-bind /dev/null /srv/p/key.pem
    --remount-ro /dev
    --remount-ro /proc
    --remount-ro /data
    --remount-ro /opt
    ");
}

#[test]
fn a_mask_comes_after_everything_it_is_in() {
    let mut key = deny("/srv/a/key.pem");
    key.presence = Presence::File;
    let mut pinned = write("/srv/a");
    pinned.why = Why::Pinned;
    // In whatever order they come.
    let plan = plan([write("/srv"), key, pinned, read("/srv/a/.git")]);
    let said = said(&plan, &Imagined::default());
    let at = |words: &str| said.find(words).expect(words);
    assert!(at("--bind /srv /srv") < at("--bind /srv/a /srv/a"));
    assert!(at("--bind /srv/a /srv/a") < at("/dev/null /srv/a/key.pem"));
    assert!(at("--bind /srv/a /srv/a") < at("--ro-bind /srv/a/.git"));
}

#[test]
fn what_is_absent_is_held_empty_where_it_could_be_created() {
    let host = Imagined {
        missing: ["/srv/p/.git", "/srv/p/docs", "/etc/none"]
            .map(PathBuf::from)
            .into(),
        ..Imagined::default()
    };
    let absent = Presence::Absent;
    let plan = plan([
        read("/"),
        write("/srv/p"),
        rule(Access::Read, "/srv/p/.git", absent),
        rule(Access::Deny, "/srv/p/docs/private", absent),
        rule(Access::Deny, "/etc/none", absent),
        rule(Access::Write, "/srv/p/new", absent),
    ]);
    assert_eq!(
        absent_of(&plan, &host),
        ["/srv/p/.git", "/srv/p/docs"].map(PathBuf::from)
    );
    let said = said(&plan, &host);
    assert!(
        said.contains("--perms 0555\n--tmpfs /srv/p/.git\n"),
        "{said}"
    );
    assert!(
        said.contains("--perms 0000\n--tmpfs /srv/p/docs\n"),
        "{said}"
    );
    assert!(!said.contains("none"), "{said}");
    assert!(!said.contains("new"), "{said}");
}

#[test]
fn what_nobody_could_create_needs_no_place() {
    let host = Imagined {
        missing: ["/usr/.git"].map(PathBuf::from).into(),
        closed: ["/usr"].map(PathBuf::from).into(),
        ..Imagined::default()
    };
    let git = rule(Access::Read, "/usr/.git", Presence::Absent);
    let plan = plan([write("/usr"), git]);
    assert!(absent_of(&plan, &host).is_empty());
    assert!(!said(&plan, &host).contains(".git"));
}

#[test]
fn what_another_has_put_there_counts_as_absent() {
    let host = Imagined {
        placeholders: ["/srv/p/.git"].map(PathBuf::from).into(),
        ..Imagined::default()
    };
    let plan = plan([write("/srv/p"), read("/srv/p/.git")]);
    assert_eq!(absent_of(&plan, &host), [PathBuf::from("/srv/p/.git")]);
    let said = said(&plan, &host);
    assert!(said.contains("--tmpfs /srv/p/.git"), "{said}");
    assert!(!said.contains("bind /srv/p/.git"), "{said}");
}

#[test]
fn what_has_gone_since_the_plan_was_made_counts_as_absent() {
    let host = Imagined {
        missing: ["/srv/p/.git"].map(PathBuf::from).into(),
        ..Imagined::default()
    };
    let plan = plan([write("/srv/p"), read("/srv/p/.git")]);
    assert_eq!(absent_of(&plan, &host), [PathBuf::from("/srv/p/.git")]);
    let said = said(&plan, &host);
    assert!(!said.contains("bind /srv/p/.git"), "{said}");
}

#[test]
fn the_kernel_is_nobodys_to_change() {
    let plan = plan([write("/"), write("/proc/sys"), write("/sys/kernel")]);
    let said = said(&plan, &Imagined::default());
    assert!(said.contains("--ro-bind-try /sys /sys"), "{said}");
    assert!(said.contains("--remount-ro /proc"), "{said}");
    assert!(!said.contains("--bind /sys"), "{said}");
    assert!(!said.contains("--bind /proc"), "{said}");
}

#[test]
fn a_device_that_is_granted_is_a_device_inside() {
    let mut kvm = write("/dev/kvm");
    kvm.presence = Presence::File;
    let mut null = write("/dev/null");
    null.presence = Presence::File;
    let said = said(&plan([read("/"), kvm, null]), &Imagined::default());
    assert!(said.contains("--dev-bind /dev/kvm /dev/kvm"), "{said}");
    assert!(!said.contains("/dev/null"), "{said}");
}

#[test]
fn what_is_below_the_devices_is_not_pinned_to_the_hosts() {
    let mut mapper = write("/dev/mapper");
    mapper.why = Why::Pinned;
    let plan = plan([write("/"), mapper, deny("/dev/mapper/x")]);
    let said = said(&plan, &Imagined::default());
    assert!(!said.contains("bind /dev/mapper /dev/mapper"), "{said}");
}
