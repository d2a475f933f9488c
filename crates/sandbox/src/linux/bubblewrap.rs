//! What bubblewrap is told: to make namespaces, and to mount a layout where the stage can't.

use std::ffi::OsString;
use std::path::Path;

use super::layout::{Mount, Mounts};
use crate::Network;

/// Who mounts what a plan grants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mounter {
    /// Our own stage, inside bubblewrap's namespaces.
    Stage,
    /// Bubblewrap itself, where nobody inside is let mount anything. It reads the table of mounts
    /// again for each of them, which takes as long as all the rest.
    Bubblewrap,
}

/// Namespaces of every kind. Nothing ends with whoever started it: what a program leaves running is
/// the server's to end.
const NAMESPACES: [&str; 5] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
];

/// No capabilities, and no way to get any.
const POWERLESS: [&str; 3] = ["--disable-userns", "--cap-drop", "ALL"];

/// For a stage that mounts, and gives up afterwards what it takes. As the root of its namespace, since
/// terminals can't be mounted by anybody else.
const POWERFUL: [&str; 9] = [
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

/// Namespaces around all of the host, and a stage that can still mount in them.
pub(super) fn for_a_stage(network: Network) -> Vec<OsString> {
    let mut words = namespaces(network);
    words.say(POWERFUL);
    words
}

/// Namespaces with these mounts, and nobody who could change them.
pub(super) fn with_mounts(mounts: &Mounts, network: Network) -> Vec<OsString> {
    let mut words = namespaces(network);
    words.say(POWERLESS);
    let root = Path::new("/");
    let mut sealed = Vec::new();
    match mounts.over.first() {
        Some((path, Mount::Writable)) if path == root => words.bind("--bind", root),
        Some((path, _)) if path == root => words.bind("--ro-bind", root),
        _ => sealed.push(root),
    }
    words.say(["--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]);
    words.say(["--proc", "/proc"]);
    sealed.extend([Path::new("/dev"), Path::new("/proc")]);
    for (path, mount) in mounts.over.iter().filter(|(path, _)| path != root) {
        match mount {
            Mount::Writable => words.bind("--bind", path),
            Mount::Readable => words.bind("--ro-bind", path),
            Mount::Device => words.bind("--dev-bind", path),
            // A device that can't be opened, since no mount here has devices.
            Mount::HiddenFile => {
                words.say(["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_os_str()]);
            }
            Mount::HiddenDirectory | Mount::Passage | Mount::Empty => {
                let mode = format!("{:04o}", mount.mode().unwrap_or_default());
                words.say(["--perms", &mode, "--tmpfs"]);
                words.say([path.as_os_str()]);
                sealed.push(path);
            }
        }
    }
    // What they lead to is there by now, and so is whatever they are in.
    for link in &mounts.links {
        words.say(["--symlink".as_ref(), link.target.as_os_str()]);
        words.say([link.path.as_os_str()]);
    }
    for path in sealed {
        words.say(["--remount-ro".as_ref(), path.as_os_str()]);
    }
    words
}

fn namespaces(network: Network) -> Vec<OsString> {
    let mut words = Vec::new();
    words.say(NAMESPACES);
    if network == Network::Restricted {
        words.say(["--unshare-net"]);
    }
    words
}

trait Words {
    fn say<T: Into<OsString>>(&mut self, words: impl IntoIterator<Item = T>);

    /// The same place inside as outside.
    fn bind(&mut self, how: &str, path: &Path) {
        self.say([how.as_ref(), path.as_os_str(), path.as_os_str()]);
    }
}

impl Words for Vec<OsString> {
    fn say<T: Into<OsString>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.extend(words.into_iter().map(Into::into));
    }
}
