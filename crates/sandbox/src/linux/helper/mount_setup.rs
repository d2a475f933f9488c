//! Mounts what a plan grants, inside bubblewrap's namespaces.
//!
//! Bubblewrap shows the whole host. The helper clones the granted trees before it covers anything, or
//! from the old root after `pivot_root`, and attaches them at their paths. Neither side follows
//! symbolic links.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use super::{STDIN_FD, inherited};
use crate::linux::mounts::{DEVICES, Mount, Mounts, PlannedMount};
use crate::linux::nofollow;
use crate::linux::sys;

/// Symbolic links in `/dev`.
const DEV_LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("core", "/proc/kcore"),
    ("ptmx", "pts/ptmx"),
];

/// Attributes of every mount: set-user-ID bits are ignored and devices can't be opened.
const NOSUID_NODEV: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const READ_ONLY: MountAttrFlags = NOSUID_NODEV.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Up to this many trees are cloned before anything is covered, each held in a descriptor. With more,
/// the helper pivots to a copy of the root and clones the trees one by one from the old root.
const MAX_CLONED_AHEAD: usize = 32;

/// A mount that failed.
pub(super) struct MountError {
    /// The path inside the sandbox, if the error concerns one.
    pub(super) path: Option<PathBuf>,
    pub(super) errno: Errno,
}

impl From<Errno> for MountError {
    fn from(errno: Errno) -> Self {
        MountError { path: None, errno }
    }
}

impl MountError {
    fn at(path: &Path) -> impl FnOnce(Errno) -> Self {
        let path = Some(path.to_owned());
        |errno| MountError { path, errno }
    }
}

/// Makes all mounts. Returns a writable mount of `/proc`; the one at `/proc` is read-only.
pub(super) fn apply(mounts: &Mounts) -> Result<OwnedFd, MountError> {
    // Modes of mount points are exact. The program gets its umask back.
    let umask = rustix::process::umask(Mode::empty());
    let mounted = mount_all(mounts);
    rustix::process::umask(umask);
    mounted
}

fn mount_all(mounts: &Mounts) -> Result<OwnedFd, MountError> {
    let host = nofollow::open_root()?;
    let (root, others) = match mounts.mounts.split_first() {
        Some((first, others)) if first.path == Path::new("/") => (attributes(first.mount), others),
        _ => (None, &mounts.mounts[..]),
    };
    let trees = others.iter().filter_map(|one| attributes(one.mount));
    let kept_root = root.filter(|_| trees.count() <= MAX_CLONED_AHEAD);
    let mut cloned = VecDeque::new();
    if kept_root.is_some() {
        for PlannedMount { path, mount, .. } in others {
            if let Some(attributes) = attributes(*mount) {
                let tree = clone_host(&host, path, attributes).map_err(MountError::at(path))?;
                cloned.push_back(tree);
            }
        }
    }
    let devices = Devices::clone_from_host(&host)?;
    // The kernel allows a new procfs only while the host's is fully visible.
    let attributes_of_proc = NOSUID_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = create_mount("proc", &[], attributes_of_proc)?;
    let mut builder = MountBuilder::default();
    match (kept_root, root) {
        (Some(attributes), _) => sys::set_mount_attributes(&host, attributes, true)?,
        (None, Some(attributes)) => {
            pivot_to(&clone_host(&host, Path::new("/"), attributes)?)?;
        }
        (None, None) => builder.pivot_to_empty_root()?,
    }
    let null = builder.mount_dev(devices)?;
    let proc = builder.mount_proc(proc)?;
    for planned @ PlannedMount { path, mount, .. } in others {
        let mounted = match attributes(*mount) {
            Some(attributes) => {
                let tree = cloned.pop_front().map(Ok);
                let tree = tree.unwrap_or_else(|| clone_host(&host, path, attributes));
                tree.and_then(|tree| builder.attach_at(path, &tree))
            }
            None => builder.mask(planned, &null),
        };
        mounted.map_err(MountError::at(path))?;
    }
    // After the mounts, which contain the links' targets and parent directories.
    for link in &mounts.links {
        let linked = builder.create_link(&link.path, &link.target);
        linked.map_err(MountError::at(&link.path))?;
    }
    builder.make_read_only()?;
    if kept_root.is_none() {
        rustix::process::fchdir(&host)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
    }
    Ok(proc)
}

/// Returns the attributes of a mount that shows the host's files; none for a mount that hides them.
fn attributes(mount: Mount) -> Option<MountAttrFlags> {
    Some(match mount {
        Mount::Writable => NOSUID_NODEV,
        Mount::Readable => READ_ONLY,
        Mount::Device => MountAttrFlags::MOUNT_ATTR_NOSUID,
        Mount::HiddenDirectory | Mount::Traversable | Mount::HiddenFile | Mount::Empty => {
            return None;
        }
    })
}

/// The state of the mounts made so far.
#[derive(Default)]
struct MountBuilder {
    /// Device numbers of the file systems that the helper created. Missing mount points are created
    /// only there, never on the host.
    own_devices: Vec<u64>,
    /// Mounts to make read-only at the end.
    read_only_at_end: Vec<OwnedFd>,
    /// One empty tmpfs per mode, to clone.
    masks: HashMap<u32, OwnedFd>,
}

/// Clones of the host's device nodes.
struct Devices {
    standard: Vec<(&'static str, OwnedFd)>,
    /// The terminal that is the program's stdout.
    terminal: Option<OwnedFd>,
}

impl Devices {
    /// A read-only mount protects mode and times of a device node; reading and writing the device
    /// still works.
    fn clone_from_host(host: &OwnedFd) -> Result<Self, MountError> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let clone_one =
            |path: &Path| clone_host(host, path, attributes).map_err(MountError::at(path));
        let standard = DEVICES.map(|path| Ok((path, clone_one(Path::new(path))?)));
        let standard = standard.into_iter().collect::<Result<_, MountError>>()?;
        let terminal = terminal_path().map(|path| clone_one(&path)).transpose()?;
        Ok(Self { standard, terminal })
    }
}

/// Returns the path on the host of the terminal that is the program's stdout, if it is one.
fn terminal_path() -> Option<PathBuf> {
    let number = STDIN_FD + 1;
    let stdout = inherited(number);
    if !rustix::termios::isatty(stdout) {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    let (opened, found) = (rustix::fs::fstat(stdout), rustix::fs::stat(&path));
    let is_same = opened.ok()?.st_rdev == found.ok()?.st_rdev;
    is_same.then_some(path)
}

/// Makes `root` the root directory. The old one stays mounted below it, out of sight.
fn pivot_to(root: &OwnedFd) -> Result<(), Errno> {
    // `pivot_root` needs an attached mount; any directory will do.
    let mount_point = nofollow::open(Path::new("/proc"))?;
    attach(root, &mount_point)?;
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(".", ".")
}

impl MountBuilder {
    fn pivot_to_empty_root(&mut self) -> Result<(), Errno> {
        let root = self.create("tmpfs", &[("mode", "0755")], NOSUID_NODEV)?;
        pivot_to(&root)?;
        self.read_only_at_end.push(root);
        Ok(())
    }

    /// Mounts a new `/dev`. Returns the null device.
    fn mount_dev(&mut self, devices: Devices) -> Result<OwnedFd, Errno> {
        let dev = self.create("tmpfs", &[("mode", "0755")], NOSUID_NODEV)?;
        self.attach_at(Path::new("/dev"), &dev)?;
        let mut null = None;
        for (path, device) in devices.standard {
            let (_, name) = split(Path::new(path))?;
            attach_file(&dev, name, &device)?;
            if name == "null" {
                null = Some(device);
            }
        }
        for (name, target) in DEV_LINKS {
            rustix::fs::symlinkat(target, &dev, name)?;
        }
        let options = [("ptmxmode", "0666"), ("mode", "620")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let pts = self.create("devpts", &options, attributes)?;
        self.attach_at(Path::new("/dev/pts"), &pts)?;
        let shm = self.create("tmpfs", &[("mode", "1777")], NOSUID_NODEV)?;
        self.attach_at(Path::new("/dev/shm"), &shm)?;
        if let Some(terminal) = devices.terminal {
            attach_file(&dev, "console".as_ref(), &terminal)?;
        }
        self.read_only_at_end.push(dev);
        null.ok_or(Errno::NOENT)
    }

    /// Mounts `/proc`. Returns a clone that stays writable.
    fn mount_proc(&mut self, proc: OwnedFd) -> Result<OwnedFd, Errno> {
        self.attach_at(Path::new("/proc"), &proc)?;
        let writable = clone_mount(&proc, OpenTreeFlags::empty())?;
        self.read_only_at_end.push(proc);
        Ok(writable)
    }

    /// Covers a path with something that can't be opened or filled. Fails with `ESTALE` if another file
    /// is there than the one to be hidden.
    fn mask(&mut self, planned: &PlannedMount, null: &OwnedFd) -> Result<(), Errno> {
        let mount = planned.mount;
        let covered = self.mount_point(&planned.path, mount != Mount::HiddenFile)?;
        let is = |expected| nofollow::identity(&covered) == Ok(expected);
        if !planned.identity.is_none_or(is) {
            return Err(Errno::STALE);
        }
        if mount == Mount::HiddenFile {
            // The null device can't be opened through a mount with `nodev`.
            let hidden = clone_mount(null, OpenTreeFlags::empty())?;
            sys::set_mount_attributes(&hidden, READ_ONLY, false)?;
            return attach(&hidden, &covered);
        }
        let mode = mount.mode().unwrap_or_default();
        // A traversable mask gets mount points below it, so it can't be shared.
        let is_shared = mount != Mount::Traversable;
        if let Some(mask) = self.masks.get(&mode).filter(|_| is_shared) {
            let copy = clone_mount(mask, OpenTreeFlags::empty())?;
            sys::set_mount_attributes(&copy, READ_ONLY, false)?;
            return attach(&copy, &covered);
        }
        let mask = self.create("tmpfs", &[("mode", &format!("{mode:04o}"))], NOSUID_NODEV)?;
        attach(&mask, &covered)?;
        if is_shared {
            sys::set_mount_attributes(&mask, READ_ONLY, false)?;
            self.masks.insert(mode, mask);
        } else {
            self.read_only_at_end.push(mask);
        }
        Ok(())
    }

    /// Creates a new file system, detached.
    fn create(
        &mut self,
        file_system: &str,
        options: &[(&str, &str)],
        attributes: MountAttrFlags,
    ) -> Result<OwnedFd, Errno> {
        let mount = create_mount(file_system, options, attributes)?;
        self.own_devices.push(rustix::fs::fstat(&mount)?.st_dev);
        Ok(mount)
    }

    fn attach_at(&self, path: &Path, mount: &OwnedFd) -> Result<(), Errno> {
        let mount_point = self.mount_point(path, is_directory(mount)?)?;
        attach(mount, &mount_point)
    }

    /// Opens a mount point. Creates it if it is missing in a file system of our own.
    fn mount_point(&self, path: &Path, is_directory: bool) -> Result<OwnedFd, Errno> {
        match nofollow::open(path).map_err(Errno::from) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let (parent, name) = split(path)?;
        let parent = self.own_directory(parent)?;
        if is_directory {
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
        } else {
            create_file(&parent, name)?;
        }
        rustix::fs::openat(&parent, name, PATH_FLAGS, Mode::empty())
    }

    /// Opens a directory in a file system of our own, creating it with its parents if necessary.
    fn own_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let directory = self.mount_point(path, true)?;
        let device = rustix::fs::fstat(&directory)?.st_dev;
        if self.own_devices.contains(&device) {
            Ok(directory)
        } else {
            Err(Errno::NOENT)
        }
    }

    fn create_link(&self, path: &Path, target: &Path) -> Result<(), Errno> {
        let (parent, name) = split(path)?;
        let parent = self.own_directory(parent)?;
        match rustix::fs::symlinkat(target, &parent, name) {
            Err(Errno::EXIST) if is_link_to(&parent, name, target) => Ok(()),
            created => created,
        }
    }

    fn make_read_only(self) -> Result<(), Errno> {
        for mount in &self.read_only_at_end {
            sys::set_mount_attributes(mount, MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        }
        Ok(())
    }
}

/// Clones the host's tree at `path` with all mounts below it, and sets `attributes` on all of them.
fn clone_host(host: &OwnedFd, path: &Path, attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let host = rustix::io::fcntl_dupfd_cloexec(host, 0)?;
    let source = nofollow::open_in(host, path)?;
    let tree = clone_mount(&source, OpenTreeFlags::AT_RECURSIVE)?;
    sys::set_mount_attributes(&tree, attributes, true)?;
    Ok(tree)
}

/// Clones a mount.
fn clone_mount(source: &OwnedFd, flags: OpenTreeFlags) -> Result<OwnedFd, Errno> {
    let common = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    rustix::mount::open_tree(source, "", common | flags)
}

/// Attaches a detached mount at `mount_point`.
fn attach(mount: &OwnedFd, mount_point: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", mount_point, "", flags)
}

/// Creates a detached mount of a new file system.
fn create_mount(
    file_system: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(file_system, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches the mount of a file under a new name in `directory`.
fn attach_file(directory: &OwnedFd, name: &OsStr, mount: &OwnedFd) -> Result<(), Errno> {
    create_file(directory, name)?;
    let mount_point = rustix::fs::openat(directory, name, PATH_FLAGS, Mode::empty())?;
    attach(mount, &mount_point)
}

/// Creates an empty file as a mount point.
fn create_file(directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o444)).map(drop)
}

fn is_directory(mount: &OwnedFd) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(mount)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Directory)
}

fn split(path: &Path) -> Result<(&Path, &OsStr), Errno> {
    path.parent().zip(path.file_name()).ok_or(Errno::INVAL)
}

fn is_link_to(parent: &OwnedFd, name: &OsStr, target: &Path) -> bool {
    let found = rustix::fs::readlinkat(parent, name, Vec::new());
    found.is_ok_and(|found| found.as_bytes() == target.as_os_str().as_bytes())
}
