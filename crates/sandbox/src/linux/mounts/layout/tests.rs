use std::collections::BTreeSet;

use super::*;
use crate::linux::bubblewrap;
use crate::{Link, Network};

/// A host where every path exists except the ones named here.
#[derive(Default)]
struct FakeHost {
    missing: BTreeSet<PathBuf>,
    placeholders: BTreeSet<PathBuf>,
    /// Directories in which our user can't create anything.
    closed: BTreeSet<PathBuf>,
    devices: BTreeSet<PathBuf>,
    /// Paths of the kernel that our user can read.
    readable: BTreeSet<PathBuf>,
    kernel: Vec<KernelMount>,
}

impl HostView for FakeHost {
    fn exists(&self, path: &Path) -> bool {
        !path.ancestors().any(|part| self.missing.contains(part))
    }

    fn is_readable(&self, path: &Path) -> bool {
        self.readable.contains(path)
    }

    fn is_creatable_in(&self, directory: &Path) -> bool {
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

fn rule(access: Access, path: &str, presence: PathState) -> Rule {
    Rule {
        path: path.into(),
        access,
        presence,
        identity: None,
        origin: Origin::Entry,
    }
}

fn read(path: &str) -> Rule {
    rule(Access::Read, path, PathState::Directory)
}

fn write(path: &str) -> Rule {
    rule(Access::Write, path, PathState::Directory)
}

fn deny(path: &str) -> Rule {
    rule(Access::Deny, path, PathState::Directory)
}

fn plan(rules: impl Into<Vec<Rule>>) -> Plan {
    Plan {
        rules: rules.into(),
        links: Vec::new(),
        network: Network::Restricted,
        listen: Vec::new(),
        cwd: "/".into(),
        warnings: Vec::new(),
    }
}

/// Returns bubblewrap's options after those for namespaces, one per line.
fn options(plan: &Plan, host: &FakeHost) -> String {
    let mut text = String::new();
    let layout = lay_out(plan, host, &[]);
    let arguments = bubblewrap::with_mounts(&layout.mounts, plan.network);
    let prefix = arguments.iter().position(|argument| argument == "ALL");
    for argument in &arguments[prefix.expect("drops capabilities") + 1..] {
        let argument = argument.to_str().expect("UTF-8");
        if argument.starts_with("--") && !text.is_empty() {
            text.pop();
            text.push('\n');
        }
        text.push_str(argument);
        text.push(' ');
    }
    text.trim_end().to_owned()
}

fn absent_of(plan: &Plan, host: &FakeHost) -> Vec<PathBuf> {
    lay_out(plan, host, &[]).absent
}

#[test]
fn workspace_is_writable_under_read_only_root() {
    let mut git = read("/srv/p/.git");
    git.origin = Origin::Protected;
    let plan = plan([read("/"), write("/srv/p"), git, read("/usr")]);
    insta::assert_snapshot!(options(&plan, &FakeHost::default()), @r"
    --ro-bind / /
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --perms 0555
    --tmpfs /proc/1
    --bind /srv/p /srv/p
    --ro-bind /srv/p/.git /srv/p/.git
    --remount-ro /dev
    --remount-ro /proc/1
    --remount-ro /proc
    ");
}

#[test]
fn plan_without_root_shows_only_grants() {
    let mut plan = plan([read("/usr/lib"), write("/srv/p"), deny("/etc")]);
    plan.network = Network::Enabled;
    plan.links.push(Link {
        path: "/lib".into(),
        target: "usr/lib".into(),
    });
    insta::assert_snapshot!(options(&plan, &FakeHost::default()), @r"
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --perms 0555
    --tmpfs /proc/1
    --bind /srv/p /srv/p
    --ro-bind /usr/lib /usr/lib
    --symlink usr/lib /lib
    --remount-ro /
    --remount-ro /dev
    --remount-ro /proc/1
    --remount-ro /proc
    ");
}

#[test]
fn denied_paths_are_hidden_and_grants_below_stay_reachable() {
    let mut key = deny("/srv/p/key.pem");
    key.presence = PathState::File;
    key.origin = Origin::Glob;
    let plan = plan([
        read("/"),
        deny("/data"),
        write("/data/me/p"),
        deny("/opt"),
        write("/srv/p"),
        key,
    ]);
    insta::assert_snapshot!(options(&plan, &FakeHost::default()), @r"
    --ro-bind / /
    --dev /dev
    --perms 1777
    --tmpfs /dev/shm
    --proc /proc
    --perms 0555
    --tmpfs /proc/1
    --perms 0111
    --tmpfs /data
    --bind /data/me/p /data/me/p
    --perms 0000
    --tmpfs /opt
    --bind /srv/p /srv/p
    --ro-bind /dev/null /srv/p/key.pem
    --remount-ro /dev
    --remount-ro /proc/1
    --remount-ro /proc
    --remount-ro /data
    --remount-ro /opt
    ");
}

#[test]
fn mask_comes_after_the_mounts_above_it() {
    let mut key = deny("/srv/a/key.pem");
    key.presence = PathState::File;
    let mut pinned = write("/srv/a");
    pinned.origin = Origin::Pinned;
    // Not sorted.
    let plan = plan([write("/srv"), key, pinned, read("/srv/a/.git")]);
    let options = options(&plan, &FakeHost::default());
    let at = |expected: &str| options.find(expected).expect(expected);
    assert!(at("--bind /srv /srv") < at("--bind /srv/a /srv/a"));
    assert!(at("--bind /srv/a /srv/a") < at("/dev/null /srv/a/key.pem"));
    assert!(at("--bind /srv/a /srv/a") < at("--ro-bind /srv/a/.git"));
}

#[test]
fn absent_paths_are_masked_where_they_could_be_created() {
    let host = FakeHost {
        missing: ["/srv/p/.git", "/srv/p/docs", "/etc/none"]
            .map(PathBuf::from)
            .into(),
        ..FakeHost::default()
    };
    let absent = PathState::Absent;
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
    let options = options(&plan, &host);
    assert!(
        options.contains("--perms 0555\n--tmpfs /srv/p/.git\n"),
        "{options}"
    );
    assert!(
        options.contains("--perms 0000\n--tmpfs /srv/p/docs\n"),
        "{options}"
    );
    assert!(!options.contains("none"), "{options}");
    assert!(!options.contains("new"), "{options}");
}

#[test]
fn absent_path_in_unwritable_directory_needs_no_placeholder() {
    let host = FakeHost {
        missing: ["/usr/.git"].map(PathBuf::from).into(),
        closed: ["/usr"].map(PathBuf::from).into(),
        ..FakeHost::default()
    };
    let git = rule(Access::Read, "/usr/.git", PathState::Absent);
    let plan = plan([write("/usr"), git]);
    assert!(absent_of(&plan, &host).is_empty());
    assert!(!options(&plan, &host).contains(".git"));
}

#[test]
fn placeholder_of_another_sandbox_counts_as_absent() {
    let host = FakeHost {
        placeholders: ["/srv/p/.git"].map(PathBuf::from).into(),
        ..FakeHost::default()
    };
    let plan = plan([write("/srv/p"), read("/srv/p/.git")]);
    assert_eq!(absent_of(&plan, &host), [PathBuf::from("/srv/p/.git")]);
    let options = options(&plan, &host);
    assert!(options.contains("--tmpfs /srv/p/.git"), "{options}");
    assert!(!options.contains("bind /srv/p/.git"), "{options}");
}

#[test]
fn path_removed_after_planning_counts_as_absent() {
    let host = FakeHost {
        missing: ["/srv/p/.git"].map(PathBuf::from).into(),
        ..FakeHost::default()
    };
    let plan = plan([write("/srv/p"), read("/srv/p/.git")]);
    assert_eq!(absent_of(&plan, &host), [PathBuf::from("/srv/p/.git")]);
    let options = options(&plan, &host);
    assert!(!options.contains("bind /srv/p/.git"), "{options}");
}

#[test]
fn kernel_file_systems_are_read_only() {
    let plan = plan([write("/"), write("/proc/sys"), write("/sys/kernel")]);
    let options = options(&plan, &FakeHost::default());
    assert!(options.contains("--ro-bind /sys /sys"), "{options}");
    assert!(options.contains("--remount-ro /proc"), "{options}");
    assert!(!options.contains("--bind /sys"), "{options}");
    assert!(!options.contains("--bind /proc"), "{options}");
}

#[test]
fn kernel_file_systems_mounted_elsewhere_are_hidden_or_read_only() {
    let at = |path: &str, kind| KernelMount {
        path: path.into(),
        kind,
    };
    let host = FakeHost {
        kernel: vec![
            at("/proc", KernelMountKind::Proc),
            at("/sys", KernelMountKind::Settings),
            at("/sys/fs/cgroup", KernelMountKind::Settings),
            at("/srv/p/root/proc", KernelMountKind::Proc),
            at("/srv/p/root/sys", KernelMountKind::Settings),
            at("/opt/root/proc", KernelMountKind::Proc),
            at("/opt/root/sys", KernelMountKind::Settings),
            at("/opt/cpu.info", KernelMountKind::Proc),
            at("/data/proc", KernelMountKind::Proc),
        ],
        ..FakeHost::default()
    };
    let plan = plan([read("/"), deny("/data"), write("/srv/p")]);
    let options = options(&plan, &host);
    for expected in [
        "--perms 0000\n--tmpfs /srv/p/root/proc\n",
        "--ro-bind /srv/p/root/sys /srv/p/root/sys\n",
        "--perms 0000\n--tmpfs /opt/root/proc\n",
        "--ro-bind /dev/null /opt/cpu.info\n",
    ] {
        assert!(options.contains(expected), "{expected} in {options}");
    }
    for expected in [
        "--tmpfs /proc\n",
        "/opt/root/sys",
        "/data/proc",
        "/sys /sys\n",
    ] {
        assert!(!options.contains(expected), "{expected} in {options}");
    }
}

fn with_devices(paths: &[&str]) -> FakeHost {
    FakeHost {
        devices: paths.iter().map(PathBuf::from).collect(),
        ..FakeHost::default()
    }
}

#[test]
fn granted_device_is_bound_as_device() {
    let host = with_devices(&["/dev/kvm", "/dev/null"]);
    let mut kvm = write("/dev/kvm");
    kvm.presence = PathState::File;
    let mut null = write("/dev/null");
    null.presence = PathState::File;
    let options = options(&plan([read("/"), kvm, null]), &host);
    assert!(
        options.contains("--dev-bind /dev/kvm /dev/kvm"),
        "{options}"
    );
    assert!(!options.contains("/dev/null"), "{options}");
}

#[test]
fn read_only_device_is_detected() {
    let host = with_devices(&["/dev/sda", "/dev/null"]);
    let sda = rule(Access::Read, "/dev/sda", PathState::File);
    assert!(is_read_only_device(&sda, &host));
    let null = rule(Access::Read, "/dev/null", PathState::File);
    assert!(!is_read_only_device(&null, &host));
    let options = options(&plan([read("/"), sda]), &host);
    assert!(!options.contains("dev-bind"), "{options}");
}

#[test]
fn directories_below_dev_are_mounted_like_others() {
    let mut pinned = write("/dev/shm/w/a");
    pinned.origin = Origin::Pinned;
    let plan = plan([
        read("/"),
        read("/dev/shm/r"),
        write("/dev/shm/w"),
        read("/dev/shm/w/.git"),
        pinned,
        deny("/dev/shm/w/a/secret"),
    ]);
    let options = options(&plan, &FakeHost::default());
    for expected in [
        "--ro-bind /dev/shm/r /dev/shm/r",
        "--bind /dev/shm/w /dev/shm/w",
        "--ro-bind /dev/shm/w/.git /dev/shm/w/.git",
        "--bind /dev/shm/w/a /dev/shm/w/a",
        "--perms 0000\n--tmpfs /dev/shm/w/a/secret",
    ] {
        assert!(options.contains(expected), "{expected} in {options}");
    }
    assert!(!options.contains("dev-bind"), "{options}");
}

#[test]
fn pinned_directory_below_dev_is_not_bound() {
    let mut mapper = write("/dev/mapper");
    mapper.origin = Origin::Pinned;
    let plan = plan([write("/"), mapper, deny("/dev/mapper/x")]);
    let options = options(&plan, &FakeHost::default());
    assert!(
        !options.contains("bind /dev/mapper /dev/mapper"),
        "{options}"
    );
}

#[test]
fn directory_that_looks_like_a_placeholder_is_masked_or_mounted() {
    let host = FakeHost {
        placeholders: ["/srv/p", "/srv/p/a", "/opt/secret"]
            .map(PathBuf::from)
            .into(),
        missing: ["/srv/p/.git", "/srv/p/a/b"].map(PathBuf::from).into(),
        ..FakeHost::default()
    };
    let mut pinned = write("/srv/p/a");
    pinned.origin = Origin::Pinned;
    let plan = plan([
        read("/"),
        deny("/opt/secret"),
        write("/srv"),
        write("/srv/p"),
        rule(Access::Read, "/srv/p/.git", PathState::Absent),
        pinned,
        rule(Access::Deny, "/srv/p/a/b", PathState::Absent),
    ]);
    assert_eq!(
        absent_of(&plan, &host),
        ["/srv/p/.git", "/srv/p/a"].map(PathBuf::from)
    );
    let options = options(&plan, &host);
    for expected in [
        "--perms 0000\n--tmpfs /opt/secret\n",
        "--bind /srv/p /srv/p\n",
        "--perms 0555\n--tmpfs /srv/p/.git\n",
        "--perms 0000\n--tmpfs /srv/p/a\n",
    ] {
        assert!(options.contains(expected), "{expected} in {options}");
    }
}

#[test]
fn writable_placeholders_of_other_sandboxes_are_masked() {
    let host = FakeHost {
        placeholders: ["/srv/big/w/.git", "/srv/big/v/.git", "/opt/.git"]
            .map(PathBuf::from)
            .into(),
        ..FakeHost::default()
    };
    let placeholders = [
        "/srv/big/w/.git",
        "/srv/big/v/.git",
        "/opt/.git",
        "/srv/big/x",
    ];
    let placeholders = placeholders.map(PathBuf::from);
    let plan = plan([read("/"), write("/srv/big"), write("/srv/big/v/.git")]);
    let layout = lay_out(&plan, &host, &placeholders);
    // Of the others, one is granted, one isn't writable, and one is no longer a placeholder.
    assert_eq!(layout.absent, [PathBuf::from("/srv/big/w/.git")]);
}

#[test]
fn every_mount_is_expected_inside() {
    let known = crate::Identity {
        device: 1,
        inode: 2,
    };
    let mut workspace = write("/srv/p");
    workspace.identity = Some(known);
    let mut sys = write("/sys");
    sys.identity = Some(known);
    let mut key = deny("/srv/p/key");
    key.presence = PathState::File;
    let rules = [read("/"), workspace, read("/srv/p/.git"), key, deny("/opt")];
    let plan = plan([&rules[..], &[sys]].concat());
    let layout = lay_out(&plan, &FakeHost::default(), &[]);
    let expected = [
        ("/", Mount::Readable, None),
        ("/opt", Mount::HiddenDirectory, None),
        ("/srv/p", Mount::Writable, Some(known)),
        ("/srv/p/.git", Mount::Readable, None),
        ("/srv/p/key", Mount::HiddenFile, None),
        ("/sys", Mount::Readable, None),
    ];
    let expected = expected.map(|(path, mount, identity)| PlannedMount {
        path: path.into(),
        mount,
        identity,
    });
    assert_eq!(layout.mounts.mounts, expected);
}

#[test]
fn readable_kernel_secrets_are_hidden() {
    let host = FakeHost {
        readable: ["/proc/keys", "/proc/uptime", "/sys/firmware"]
            .map(PathBuf::from)
            .into(),
        ..FakeHost::default()
    };
    let hidden = |plan: &Plan| {
        let layout = lay_out(plan, &host, &[]);
        let hidden = layout.mounts.mounts.into_iter();
        hidden
            .filter(|one| one.mount.mode() == Some(0) || one.mount == Mount::HiddenFile)
            .map(|one| one.path)
            .collect::<Vec<_>>()
    };
    let (keys, firmware) = (PathBuf::from("/proc/keys"), PathBuf::from("/sys/firmware"));
    assert_eq!(hidden(&plan([read("/")])), [keys.clone(), firmware]);
    // Without a grant there is no `/sys`.
    assert_eq!(hidden(&plan([read("/usr")])), [keys]);
}
