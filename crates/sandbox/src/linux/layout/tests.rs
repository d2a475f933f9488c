use std::collections::BTreeSet;

use super::*;
use crate::linux::bubblewrap;
use crate::{Link, Network};

/// A host where everything exists that isn't named.
#[derive(Default)]
struct Imagined {
    missing: BTreeSet<PathBuf>,
    placeholders: BTreeSet<PathBuf>,
    /// Where only others may create something.
    closed: BTreeSet<PathBuf>,
    devices: BTreeSet<PathBuf>,
    kernel: Vec<KernelMount>,
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

    fn is_directory(&self, path: &Path) -> bool {
        path.extension().is_none()
    }

    fn is_device(&self, path: &Path) -> bool {
        self.devices.contains(path)
    }

    fn kernel_mounts(&self) -> Vec<KernelMount> {
        self.kernel.clone()
    }
}

fn rule(access: Access, path: &str, presence: Presence) -> Rule {
    Rule {
        path: path.into(),
        access,
        presence,
        identity: None,
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

/// What bubblewrap would be told behind what it is told of namespaces, an option to a line.
fn said(plan: &Plan, host: &Imagined) -> String {
    let mut text = String::new();
    let layout = lay_out(plan, host, &[]);
    let words = bubblewrap::with_mounts(&layout.mounts, plan.network);
    let around = words.iter().position(|word| word == "ALL");
    for word in &words[around.expect("no capabilities") + 1..] {
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
    lay_out(plan, host, &[]).absent
}

#[test]
fn a_workspace_under_a_readable_root() {
    let mut git = read("/srv/p/.git");
    git.why = Why::Protected;
    let plan = plan([read("/"), write("/srv/p"), git, read("/usr")]);
    insta::assert_snapshot!(said(&plan, &Imagined::default()), @r"
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
    assert!(said.contains("--ro-bind /sys /sys"), "{said}");
    assert!(said.contains("--remount-ro /proc"), "{said}");
    assert!(!said.contains("--bind /sys"), "{said}");
    assert!(!said.contains("--bind /proc"), "{said}");
}

#[test]
fn what_the_kernel_shows_elsewhere_is_no_more_than_what_it_shows_in_its_place() {
    let at = |path: &str, shows| KernelMount {
        path: path.into(),
        shows,
    };
    let host = Imagined {
        kernel: vec![
            at("/proc", Shows::Processes),
            at("/sys", Shows::Settings),
            at("/sys/fs/cgroup", Shows::Settings),
            at("/srv/p/root/proc", Shows::Processes),
            at("/srv/p/root/sys", Shows::Settings),
            at("/opt/root/proc", Shows::Processes),
            at("/opt/root/sys", Shows::Settings),
            at("/opt/cpu.info", Shows::Processes),
            at("/data/proc", Shows::Processes),
        ],
        ..Imagined::default()
    };
    let plan = plan([read("/"), deny("/data"), write("/srv/p")]);
    let said = said(&plan, &host);
    for words in [
        "--perms 0000\n--tmpfs /srv/p/root/proc\n",
        "--ro-bind /srv/p/root/sys /srv/p/root/sys\n",
        "--perms 0000\n--tmpfs /opt/root/proc\n",
        "--ro-bind /dev/null /opt/cpu.info\n",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    for words in [
        "--tmpfs /proc",
        "/opt/root/sys",
        "/data/proc",
        "/sys /sys\n",
    ] {
        assert!(!said.contains(words), "{words} in {said}");
    }
}

fn with_devices(paths: &[&str]) -> Imagined {
    Imagined {
        devices: paths.iter().map(PathBuf::from).collect(),
        ..Imagined::default()
    }
}

#[test]
fn a_device_that_is_granted_is_a_device_inside() {
    let host = with_devices(&["/dev/kvm", "/dev/null"]);
    let mut kvm = write("/dev/kvm");
    kvm.presence = Presence::File;
    let mut null = write("/dev/null");
    null.presence = Presence::File;
    let said = said(&plan([read("/"), kvm, null]), &host);
    assert!(said.contains("--dev-bind /dev/kvm /dev/kvm"), "{said}");
    assert!(!said.contains("/dev/null"), "{said}");
}

#[test]
fn a_device_to_read_is_none_to_write() {
    let host = with_devices(&["/dev/sda", "/dev/null"]);
    let sda = rule(Access::Read, "/dev/sda", Presence::File);
    assert!(is_half_a_device(&sda, &host));
    let null = rule(Access::Read, "/dev/null", Presence::File);
    assert!(!is_half_a_device(&null, &host));
    let said = said(&plan([read("/"), sda]), &host);
    assert!(!said.contains("dev-bind"), "{said}");
}

#[test]
fn below_the_devices_directories_are_as_elsewhere() {
    let mut pinned = write("/dev/shm/w/a");
    pinned.why = Why::Pinned;
    let plan = plan([
        read("/"),
        read("/dev/shm/r"),
        write("/dev/shm/w"),
        read("/dev/shm/w/.git"),
        pinned,
        deny("/dev/shm/w/a/secret"),
    ]);
    let said = said(&plan, &Imagined::default());
    for words in [
        "--ro-bind /dev/shm/r /dev/shm/r",
        "--bind /dev/shm/w /dev/shm/w",
        "--ro-bind /dev/shm/w/.git /dev/shm/w/.git",
        "--bind /dev/shm/w/a /dev/shm/w/a",
        "--perms 0000\n--tmpfs /dev/shm/w/a/secret",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(!said.contains("dev-bind"), "{said}");
}

#[test]
fn what_is_below_the_devices_is_not_pinned_to_the_hosts() {
    let mut mapper = write("/dev/mapper");
    mapper.why = Why::Pinned;
    let plan = plan([write("/"), mapper, deny("/dev/mapper/x")]);
    let said = said(&plan, &Imagined::default());
    assert!(!said.contains("bind /dev/mapper /dev/mapper"), "{said}");
}

#[test]
fn what_looks_absent_is_left_out_only_where_it_is_covered() {
    let host = Imagined {
        placeholders: ["/srv/p", "/srv/p/a", "/opt/secret"]
            .map(PathBuf::from)
            .into(),
        missing: ["/srv/p/.git", "/srv/p/a/b"].map(PathBuf::from).into(),
        ..Imagined::default()
    };
    let mut pinned = write("/srv/p/a");
    pinned.why = Why::Pinned;
    let plan = plan([
        read("/"),
        deny("/opt/secret"),
        write("/srv"),
        write("/srv/p"),
        rule(Access::Read, "/srv/p/.git", Presence::Absent),
        pinned,
        rule(Access::Deny, "/srv/p/a/b", Presence::Absent),
    ]);
    assert_eq!(
        absent_of(&plan, &host),
        ["/srv/p/.git", "/srv/p/a"].map(PathBuf::from)
    );
    let said = said(&plan, &host);
    for words in [
        "--perms 0000\n--tmpfs /opt/secret\n",
        "--bind /srv/p /srv/p\n",
        "--perms 0555\n--tmpfs /srv/p/.git\n",
        "--perms 0000\n--tmpfs /srv/p/a\n",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn what_others_hold_absent_is_so_for_who_could_change_it() {
    let host = Imagined {
        placeholders: ["/srv/big/w/.git", "/srv/big/v/.git", "/opt/.git"]
            .map(PathBuf::from)
            .into(),
        ..Imagined::default()
    };
    let held = [
        "/srv/big/w/.git",
        "/srv/big/v/.git",
        "/opt/.git",
        "/srv/big/x",
    ];
    let held = held.map(PathBuf::from);
    let plan = plan([read("/"), write("/srv/big"), write("/srv/big/v/.git")]);
    let layout = lay_out(&plan, &host, &held);
    // One of them is granted, one can't be changed, and one isn't empty any more.
    assert_eq!(layout.absent, [PathBuf::from("/srv/big/w/.git")]);
}

#[test]
fn every_mount_has_to_be_found_in_its_place() {
    let known = crate::Identity {
        device: 1,
        inode: 2,
    };
    let mut workspace = write("/srv/p");
    workspace.identity = Some(known);
    let mut key = deny("/srv/p/key");
    key.presence = Presence::File;
    let plan = plan([read("/"), workspace, read("/srv/p/.git"), key, deny("/opt")]);
    let layout = lay_out(&plan, &Imagined::default(), &[]);
    let host = |identity, read_only| Stands::Host {
        identity,
        read_only,
    };
    let expected = [
        ("/", host(None, true)),
        ("/opt", Stands::Nothing { mode: 0 }),
        ("/srv/p", host(Some(known), false)),
        ("/srv/p/.git", host(None, true)),
        ("/srv/p/key", Stands::Null),
    ];
    let expected = expected.map(|(path, stands)| Place {
        path: path.into(),
        stands,
    });
    assert_eq!(layout.places, expected);
}
