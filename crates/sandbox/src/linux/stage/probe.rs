//! Trying out what this host lets us do, in a process of its own.

use std::io::{self, Write};
use std::path::Path;

use super::{PROBED, SELF, borrowed, c_string, environment};
use crate::linux::orders::Grant;
use crate::linux::{filter, landlock, layout, sys};
use crate::{Access, Level, Network};

/// What a probe that has come through writes, before the version of Landlock.
pub(crate) const REPORTED: &str = "landlock ";

/// Becomes bubblewrap, with everything that a plan can ask of it in small. Returns if that fails.
pub(super) fn run(bubblewrap: &str, name: &[&str]) {
    let own = super::open(Path::new("/proc/self/exe"))
        .and_then(|own| rustix::io::fcntl_dupfd_cloexec(own, SELF + 1));
    let placed = own.and_then(|own| super::put(own, SELF));
    let error = match placed {
        Ok(()) => become_bubblewrap(bubblewrap, name),
        Err(errno) => errno.into(),
    };
    let _ = writeln!(io::stderr(), "{error}");
}

fn become_bubblewrap(bubblewrap: &str, name: &[&str]) -> io::Error {
    let own = format!("/proc/self/fd/{SELF}");
    let mounts = [
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        "/dev/shm",
        "--proc",
        "/proc",
        "--remount-ro",
        "/proc",
        "--",
        &own,
    ];
    let words = ["bwrap"].into_iter().chain(layout::ALWAYS).chain(mounts);
    let words = words.chain(name.iter().copied()).chain([PROBED]);
    let argv: Vec<_> = words.map(c_string).collect();
    let program = c_string(bubblewrap);
    sys::execute(&program, &borrowed(&argv), &borrowed(&environment()))
}

/// What happens inside: the last walls are put up, and who waits hears how high they are.
pub(super) fn report() {
    let version = sys::landlock_version().unwrap_or_default();
    let outcome = rustix::thread::set_no_new_privs(true)
        .map_err(io::Error::from)
        .and_then(|()| {
            let root = Grant {
                path: "/".into(),
                access: Access::Read,
                identity: None,
            };
            landlock::confine(&[root], Level::Namespaces)
        })
        .and_then(|_| {
            let filter = filter::filter(Network::Restricted, Level::Namespaces);
            sys::set_filter(&filter)
        });
    let _ = match outcome {
        Ok(()) => writeln!(io::stdout(), "{REPORTED}{version}"),
        Err(error) => writeln!(io::stderr(), "seccomp or landlock: {error}"),
    };
}
