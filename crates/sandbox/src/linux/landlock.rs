//! Landlock rules: a further layer besides mounts and seccomp.
//!
//! A Landlock rule grants access to a path and everything below it. It can't make exceptions below a
//! granted path; those are enforced by mounts alone.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::helper::Grant;
use super::mounts::DEVICES;
use super::nofollow;
use super::sys::{self, RulesetAttributes};
use crate::{Access, Level};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// The rights that apply to files other than directories.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const DEVICE_RIGHTS: u64 = READ | WRITE_FILE | TRUNCATE | IOCTL_DEV;

const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1;
const SCOPE_SIGNAL: u64 = 1 << 1;

/// Returns all file system rights that a Landlock version supports.
fn handled(version: u32) -> u64 {
    let all = (REFER << 3) - 1;
    match version {
        0 | 1 => REFER - 1,
        2 => TRUNCATE - 1,
        3 | 4 => IOCTL_DEV - 1,
        _ => all,
    }
}

/// Returns the rights of a writable path: all but creating devices.
fn write(version: u32) -> u64 {
    handled(version) & !(MAKE_CHAR | MAKE_BLOCK)
}

/// Restricts this process and its children to `grants`. Returns false if the kernel has no Landlock.
pub(super) fn restrict(grants: &[Grant], level: Level) -> Result<bool, Errno> {
    let version = match sys::landlock_version() {
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => return Ok(false),
        version => version?,
    };
    let handled = handled(version);
    let attributes = RulesetAttributes {
        handled_fs: handled,
        handled_net: 0,
        // Scoped even with network access: no policy grants abstract sockets.
        scoped: if version < 6 {
            0
        } else {
            SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL
        },
    };
    // Older kernels reject a struct that is longer than the one they know.
    let size = match version {
        ..4 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    let ruleset = sys::landlock_create_ruleset(&attributes, size)?;
    let standard = standard_grants(version, level);
    let standard = standard.iter().map(|(path, rights)| {
        let opened = rustix::fs::open(*path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        (opened, *rights)
    });
    let granted = grants.iter().filter_map(|grant| match grant.access {
        Access::Read => Some((open(grant), READ)),
        Access::Write => Some((open(grant), write(version))),
        Access::Deny => None,
    });
    for (opened, rights) in standard.chain(granted) {
        match opened {
            Ok(opened) => allow(&ruleset, opened, rights & handled)?,
            // There is nothing to grant.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
    }
    // The terminal may have no path inside the sandbox; programs reopen it through its descriptor.
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout()] {
        if rustix::termios::isatty(stream) {
            allow(&ruleset, stream, DEVICE_RIGHTS & handled)?;
        }
    }
    sys::landlock_restrict_self(&ruleset)?;
    Ok(true)
}

/// Opens the path of a grant. Fails with `ESTALE` if it isn't the file that was planned.
fn open(grant: &Grant) -> Result<OwnedFd, Errno> {
    let opened = nofollow::open(&grant.path)?;
    match grant.identity {
        Some(expected) if nofollow::identity(&opened)? != expected => Err(Errno::STALE),
        _ => Ok(opened),
    }
}

/// Returns the paths that every program gets. Inside namespaces `/dev` is the sandbox's own; without
/// them it is the host's, and only harmless devices are granted.
fn standard_grants(version: u32, level: Level) -> Vec<(&'static str, u64)> {
    let terminals = ["/dev/ptmx", "/dev/pts"];
    let devices = DEVICES.into_iter().chain(terminals);
    let mut grants: Vec<_> = devices.map(|device| (device, DEVICE_RIGHTS)).collect();
    grants.push(("/proc", READ));
    if level == Level::Namespaces {
        let own = [
            ("/dev", READ),
            ("/dev/console", DEVICE_RIGHTS),
            ("/dev/shm", write(version)),
        ];
        grants.extend(own);
    }
    grants
}

fn allow(ruleset: &OwnedFd, opened: impl AsFd, rights: u64) -> Result<(), Errno> {
    let mode = rustix::fs::fstat(&opened)?.st_mode;
    let rights = match FileType::from_raw_mode(mode) {
        FileType::Directory => rights,
        _ => rights & FILE_RIGHTS,
    };
    sys::landlock_allow(ruleset, opened, rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handled_rights_depend_on_the_version() {
        assert_eq!(handled(1), 0x1fff);
        assert_eq!(handled(2), 0x3fff);
        assert_eq!(handled(3), 0x7fff);
        assert_eq!(handled(4), 0x7fff);
        assert_eq!(handled(5), 0xffff);
        assert_eq!(handled(9), 0xffff);
    }

    #[test]
    fn read_rights_exclude_write_rights() {
        assert_eq!(READ & (WRITE_FILE | TRUNCATE | REFER), 0);
        assert_eq!(write(5) & READ, READ);
        assert_ne!(write(5) & REFER, 0);
    }
}
