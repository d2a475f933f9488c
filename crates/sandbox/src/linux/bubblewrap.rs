//! Bubblewrap's command line options.

use std::ffi::OsString;
use std::path::Path;

use super::mounts::{Mount, Mounts, PlannedMount};
use crate::Network;

/// The process that makes the mounts of a plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mounter {
    /// The helper, inside bubblewrap's namespaces.
    Helper,
    /// Bubblewrap, on hosts where the helper isn't allowed to mount. Slower: bubblewrap reads the mount
    /// table again for each mount.
    Bubblewrap,
}

/// Without `--die-with-parent`: the server ends leftover processes itself.
const NAMESPACES: [&str; 5] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
];

/// No capabilities, and no way to get any.
const UNPRIVILEGED: [&str; 3] = ["--disable-userns", "--cap-drop", "ALL"];

/// The entry of bubblewrap's first process in the sandbox's `/proc`.
const FIRST_PROCESS: &str = "/proc/1";

/// For a helper that makes the mounts and drops its capabilities afterwards. It is root of its user
/// namespace because only root can mount devpts.
const PRIVILEGED: [&str; 9] = [
    "--uid",
    "0",
    "--gid",
    "0",
    "--cap-add",
    "ALL",
    "--dev-bind",
    "/",
    "/",
];

/// Returns options for namespaces that show the whole host, in which the helper can mount.
pub(super) fn for_helper(network: Network) -> Vec<OsString> {
    let mut options = namespaces(network);
    options.add(PRIVILEGED);
    options
}

/// Returns options for namespaces with these mounts, without the capability to change them.
pub(super) fn with_mounts(mounts: &Mounts, network: Network) -> Vec<OsString> {
    let mut options = namespaces(network);
    options.add(UNPRIVILEGED);
    let root = Path::new("/");
    let mut read_only = Vec::new();
    let first = mounts.mounts.first().filter(|first| first.path == root);
    match first.map(|first| first.mount) {
        Some(Mount::Writable) => options.bind("--bind", root),
        Some(_) => options.bind("--ro-bind", root),
        None => read_only.push(root),
    }
    options.add(["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]);
    options.add(["--proc", "/proc"]);
    // Bubblewrap's first process is in the program's user namespace and has no filter. Without Landlock, the
    // program could read its memory and open its descriptors.
    options.add(["--perms", "0555", "--tmpfs", FIRST_PROCESS]);
    read_only.extend(["/dev", FIRST_PROCESS, "/proc"].map(Path::new));
    let others = mounts.mounts.iter().filter(|mount| mount.path != root);
    for PlannedMount { path, mount, .. } in others {
        match mount {
            Mount::Writable => options.bind("--bind", path),
            Mount::Readable => options.bind("--ro-bind", path),
            Mount::Device => options.bind("--dev-bind", path),
            // The null device can't be opened through a mount with `nodev`.
            Mount::HiddenFile => {
                options.add(["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_os_str()]);
            }
            Mount::HiddenDirectory | Mount::Traversable | Mount::Empty => {
                let mode = format!("{:04o}", mount.mode().unwrap_or_default());
                options.add(["--perms", &mode, "--tmpfs"]);
                options.add([path.as_os_str()]);
                read_only.push(path);
            }
        }
    }
    // After the mounts, which contain the links' targets and parent directories.
    for link in &mounts.links {
        options.add(["--symlink".as_ref(), link.target.as_os_str()]);
        options.add([link.path.as_os_str()]);
    }
    for path in read_only {
        options.add(["--remount-ro".as_ref(), path.as_os_str()]);
    }
    options
}

fn namespaces(network: Network) -> Vec<OsString> {
    let mut options = Vec::new();
    options.add(NAMESPACES);
    if network == Network::Restricted {
        options.add(["--unshare-net"]);
    }
    options
}

/// A list of bubblewrap's command-line options.
trait Options {
    fn add<T: Into<OsString>>(&mut self, arguments: impl IntoIterator<Item = T>);

    /// Adds a bind mount at the path that it has on the host.
    fn bind(&mut self, option: &str, path: &Path) {
        self.add([option.as_ref(), path.as_os_str(), path.as_os_str()]);
    }
}

impl Options for Vec<OsString> {
    fn add<T: Into<OsString>>(&mut self, arguments: impl IntoIterator<Item = T>) {
        self.extend(arguments.into_iter().map(Into::into));
    }
}
