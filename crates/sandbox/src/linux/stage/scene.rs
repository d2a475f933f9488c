//! Mounting what a plan grants, inside bubblewrap's namespaces.
//!
//! All of the host is there at first. What is granted is taken out of it before anything is covered, or
//! from behind another root, and put in its place. Paths are followed through no link, on either side.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, UnmountFlags};

use super::trees::{CLOSED, OPENED, PLAIN, attach, clone, kind, make, make_file, put_file, take};
use super::{STREAMS, inherited};
use crate::linux::layout::{DEVICES, Mount, Mounts};
use crate::linux::place;
use crate::linux::sys;

const LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("core", "/proc/kcore"),
    ("ptmx", "pts/ptmx"),
];

/// So many are taken before anything is covered, each in a descriptor. With more of them the host is left
/// for a copy, and stays behind it until all is taken.
const FEW: usize = 32;

/// What could not be mounted.
pub(super) struct Unset {
    /// Where, if it was about something that is granted or hidden.
    pub(super) path: Option<PathBuf>,
    pub(super) errno: Errno,
}

impl From<Errno> for Unset {
    fn from(errno: Errno) -> Self {
        Unset { path: None, errno }
    }
}

impl Unset {
    fn at(path: &Path) -> impl FnOnce(Errno) -> Self {
        let path = Some(path.to_owned());
        |errno| Unset { path, errno }
    }
}

/// Mounts all of it, and returns a view of `/proc` that can be written to: what is mounted there can't.
pub(super) fn set(mounts: &Mounts) -> Result<OwnedFd, Unset> {
    // The program's again, once all is there.
    let mask = rustix::process::umask(Mode::empty());
    let set = mount(mounts);
    rustix::process::umask(mask);
    set
}

fn mount(mounts: &Mounts) -> Result<OwnedFd, Unset> {
    let host = place::root()?;
    let (root, others) = match mounts.over.split_first() {
        Some(((path, mount), others)) if path == Path::new("/") => (attributes(*mount), others),
        _ => (None, &mounts.over[..]),
    };
    let stays = root.filter(|_| others.len() <= FEW);
    let mut taken = VecDeque::new();
    if stays.is_some() {
        for (path, mount) in others {
            if let Some(attributes) = attributes(*mount) {
                let tree = take(&host, path, attributes).map_err(Unset::at(path))?;
                taken.push_back(tree);
            }
        }
    }
    let devices = Devices::take(&host)?;
    // While that of the host can be seen: otherwise nobody is given another.
    let proc = proc()?;
    let mut scene = Scene::default();
    match (stays, root) {
        (Some(attributes), _) => sys::set_mount(&host, attributes, true)?,
        (None, Some(attributes)) => scene.leave_for(&take(&host, Path::new("/"), attributes)?)?,
        (None, None) => scene.leave_for_nothing()?,
    }
    let null = scene.put_devices(devices)?;
    let proc = scene.put_proc(proc)?;
    for (path, mount) in others {
        let put = match attributes(*mount) {
            Some(attributes) => {
                let taken = taken.pop_front().map(Ok);
                let tree = taken.unwrap_or_else(|| take(&host, path, attributes));
                tree.and_then(|tree| scene.put(path, &tree))
            }
            None => scene.mask(path, *mount, &null),
        };
        put.map_err(Unset::at(path))?;
    }
    // What they lead to is there by now, and so is whatever they are in.
    for link in &mounts.links {
        let made = scene.link(&link.path, &link.target);
        made.map_err(Unset::at(&link.path))?;
    }
    scene.seal()?;
    if stays.is_none() {
        rustix::process::fchdir(&host)?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
    }
    Ok(proc)
}

/// What becomes of something of the host's; none where that is hidden.
fn attributes(mount: Mount) -> Option<MountAttrFlags> {
    Some(match mount {
        Mount::Writable => PLAIN,
        Mount::Readable => CLOSED,
        Mount::Device => MountAttrFlags::MOUNT_ATTR_NOSUID,
        Mount::HiddenDirectory | Mount::Passage | Mount::HiddenFile | Mount::Empty => return None,
    })
}

/// What has been made so far.
#[derive(Default)]
struct Scene {
    /// The file systems that are ours alone: where something is missing in one, it is made.
    own: Vec<u64>,
    /// What is closed when all is there.
    sealed: Vec<OwnedFd>,
    /// One mask of each mode, to copy.
    masks: HashMap<u32, OwnedFd>,
}

/// The host's, for everybody.
struct Devices {
    each: Vec<(&'static str, OwnedFd)>,
    /// The terminal that we stand on.
    terminal: Option<OwnedFd>,
}

impl Devices {
    /// They can be read and written all the same; their modes and times can't.
    fn take(host: &OwnedFd) -> Result<Self, Unset> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let take_one = |path: &Path| take(host, path, attributes).map_err(Unset::at(path));
        let each = DEVICES.map(|path| Ok((path, take_one(Path::new(path))?)));
        let each = each.into_iter().collect::<Result<_, Unset>>()?;
        let terminal = terminal().map(|path| take_one(&path)).transpose()?;
        Ok(Self { each, terminal })
    }
}

/// Where the host has the terminal that the program will stand on.
fn terminal() -> Option<PathBuf> {
    let stream = inherited(STREAMS + 1);
    if !rustix::termios::isatty(stream) {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{}", STREAMS + 1)).ok()?;
    let (ours, found) = (rustix::fs::fstat(stream), rustix::fs::stat(&path));
    let is_it = ours.ok()?.st_rdev == found.ok()?.st_rdev;
    is_it.then_some(path)
}

impl Scene {
    /// A root with nothing in it.
    fn leave_for_nothing(&mut self) -> Result<(), Errno> {
        let root = self.make("tmpfs", &[("mode", "0755")], PLAIN)?;
        self.leave_for(&root)?;
        self.sealed.push(root);
        Ok(())
    }

    /// Another root. The one before stays behind it, out of sight.
    fn leave_for(&self, root: &OwnedFd) -> Result<(), Errno> {
        // Anywhere at all.
        let somewhere = place::follow(Path::new("/proc"))?;
        attach(root, &somewhere)?;
        rustix::process::fchdir(root)?;
        rustix::process::pivot_root(".", ".")
    }

    /// Returns the one that nothing comes out of.
    fn put_devices(&mut self, devices: Devices) -> Result<OwnedFd, Errno> {
        let nosuid = MountAttrFlags::MOUNT_ATTR_NOSUID;
        let all = self.make("tmpfs", &[("mode", "0755")], PLAIN)?;
        self.put(Path::new("/dev"), &all)?;
        let mut null = None;
        for (path, device) in devices.each {
            let (_, name) = split(Path::new(path))?;
            put_file(&all, name, &device)?;
            if name == "null" {
                null = Some(device);
            }
        }
        for (name, target) in LINKS {
            rustix::fs::symlinkat(target, &all, name)?;
        }
        let options = [("ptmxmode", "0666"), ("mode", "620")];
        let attributes = nosuid | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let terminals = self.make("devpts", &options, attributes)?;
        self.put(Path::new("/dev/pts"), &terminals)?;
        let memory = self.make("tmpfs", &[("mode", "1777")], PLAIN)?;
        self.put(Path::new("/dev/shm"), &memory)?;
        if let Some(terminal) = devices.terminal {
            put_file(&all, "console".as_ref(), &terminal)?;
        }
        self.sealed.push(all);
        null.ok_or(Errno::NOENT)
    }

    /// Returns a copy that can be written to.
    fn put_proc(&mut self, proc: OwnedFd) -> Result<OwnedFd, Errno> {
        self.put(Path::new("/proc"), &proc)?;
        let copy = clone(&proc, OpenTreeFlags::empty())?;
        self.sealed.push(proc);
        Ok(copy)
    }

    /// Something that can't be opened or filled.
    fn mask(&mut self, path: &Path, mount: Mount, null: &OwnedFd) -> Result<(), Errno> {
        if mount == Mount::HiddenFile {
            // A device that can't be opened, since this mount has none.
            let hidden = clone(null, OpenTreeFlags::empty())?;
            sys::set_mount(&hidden, CLOSED, false)?;
            return self.put(path, &hidden);
        }
        let mode = mount.mode().unwrap_or_default();
        // In a passage there will be something, and only there.
        if let Some(one) = self.masks.get(&mode).filter(|_| mount != Mount::Passage) {
            let another = clone(one, OpenTreeFlags::empty())?;
            sys::set_mount(&another, CLOSED, false)?;
            return self.put(path, &another);
        }
        let one = self.make("tmpfs", &[("mode", &format!("{mode:04o}"))], PLAIN)?;
        self.put(path, &one)?;
        match mount {
            Mount::Passage => self.sealed.push(one),
            _ => {
                sys::set_mount(&one, CLOSED, false)?;
                self.masks.insert(mode, one);
            }
        }
        Ok(())
    }

    /// A new file system of our own, mounted nowhere yet.
    fn make(
        &mut self,
        kind: &str,
        options: &[(&str, &str)],
        attributes: MountAttrFlags,
    ) -> Result<OwnedFd, Errno> {
        let made = make(kind, options, attributes)?;
        self.own.push(rustix::fs::fstat(&made)?.st_dev);
        Ok(made)
    }

    fn put(&self, path: &Path, tree: &OwnedFd) -> Result<(), Errno> {
        let is_directory = kind(tree)? == FileType::Directory;
        let spot = self.spot(path, is_directory)?;
        attach(tree, &spot)
    }

    /// Where to mount, which is made if it is missing in what is ours.
    fn spot(&self, path: &Path, is_directory: bool) -> Result<OwnedFd, Errno> {
        match place::follow(path).map_err(Errno::from) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        match is_directory {
            true => rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?,
            false => make_file(&parent, name)?,
        }
        rustix::fs::openat(&parent, name, OPENED, Mode::empty())
    }

    /// A directory of ours, with all that leads to it.
    fn directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let directory = self.spot(path, true)?;
        match self.own.contains(&rustix::fs::fstat(&directory)?.st_dev) {
            true => Ok(directory),
            // Nothing is made on the host.
            false => Err(Errno::NOENT),
        }
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), Errno> {
        let (parent, name) = split(path)?;
        let parent = self.directory(parent)?;
        match rustix::fs::symlinkat(target, &parent, name) {
            // It is the same as outside.
            Err(Errno::EXIST) if is_link(&parent, name, target) => Ok(()),
            made => made,
        }
    }

    fn seal(self) -> Result<(), Errno> {
        for mount in &self.sealed {
            sys::set_mount(mount, MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        }
        Ok(())
    }
}

fn proc() -> Result<OwnedFd, Errno> {
    make("proc", &[], PLAIN | MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

fn split(path: &Path) -> Result<(&Path, &OsStr), Errno> {
    path.parent().zip(path.file_name()).ok_or(Errno::INVAL)
}

fn is_link(parent: &OwnedFd, name: &OsStr, target: &Path) -> bool {
    let found = rustix::fs::readlinkat(parent, name, Vec::new());
    found.is_ok_and(|found| found.as_bytes() == target.as_os_str().as_bytes())
}
