//! Landlock inside the namespaces: a third wall, for the day one of the others has a hole.
//!
//! Its rules only ever grant, for a path and all below it. So it knows what may be read and what may
//! be written, and the exceptions in between are the mounts' alone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::layout::DEVICES;
use super::orders::Grant;
use super::place;
use super::sys::{self, RulesetAttributes};
use crate::{Access, Level};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_IOCTL: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIRECTORY;
/// What makes sense for something that isn't a directory.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_IOCTL;
const OF_DEVICES: u64 = READ | WRITE_FILE | TRUNCATE | DEVICE_IOCTL;

const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 1 << 1;

/// What a version handles of file systems: everything it knows.
fn handled(version: u32) -> u64 {
    let all = (REFER << 3) - 1;
    match version {
        0 | 1 => REFER - 1,
        2 => TRUNCATE - 1,
        3 | 4 => DEVICE_IOCTL - 1,
        _ => all,
    }
}

/// Nobody confined makes a device.
fn write(version: u32) -> u64 {
    handled(version) & !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE)
}

/// The same and no more, from now on and for everything below. Says whether this kernel has
/// Landlock; where it hasn't, the other walls have to do.
pub(super) fn confine(grants: &[Grant], level: Level) -> io::Result<bool> {
    let version = match sys::landlock_version() {
        Ok(version) => version,
        Err(error) if is_missing(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let handled = handled(version);
    let attributes = RulesetAttributes {
        handled_fs: handled,
        handled_net: 0,
        // With a network, too: a socket without a path is granted by nobody.
        scoped: match version {
            ..6 => 0,
            _ => ABSTRACT_SOCKETS | SIGNALS,
        },
    };
    // Older kernels refuse members that they don't know.
    let size = match version {
        ..4 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    let ruleset = sys::landlock_ruleset(&attributes, size)?;
    let usual = usual(version, level);
    let usual = usual.iter().map(|(path, rights)| {
        let opened = rustix::fs::open(*path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        (opened, *rights)
    });
    let granted = grants.iter().filter_map(|grant| match grant.access {
        Access::Read => Some((open(grant), READ)),
        Access::Write => Some((open(grant), write(version))),
        Access::Deny => None,
    });
    for (opened, rights) in usual.chain(granted) {
        match opened {
            Ok(opened) => allow(&ruleset, opened, rights & handled)?,
            // Then there is nothing to grant.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // The terminal it stands on may have no path inside, and programs open it again by its descriptor.
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout()] {
        if rustix::termios::isatty(stream) {
            allow(&ruleset, stream, OF_DEVICES & handled)?;
        }
    }
    sys::landlock_restrict(&ruleset)?;
    Ok(true)
}

/// What was planned with, and nothing that has been put in its place since.
fn open(grant: &Grant) -> Result<OwnedFd, Errno> {
    let opened = place::follow(&grant.path)?;
    match grant.identity {
        Some(known) if place::identity(&opened)? != known => Err(Errno::STALE),
        _ => Ok(opened),
    }
}

/// What every program gets. Inside namespaces all of it is the process's own; without them the
/// devices are the host's, and only the harmless ones are for everybody.
fn usual(version: u32, level: Level) -> Vec<(&'static str, u64)> {
    let terminals = ["/dev/ptmx", "/dev/pts"];
    let devices = DEVICES.into_iter().chain(terminals);
    let mut usual: Vec<_> = devices.map(|device| (device, OF_DEVICES)).collect();
    usual.push(("/proc", READ));
    if level == Level::Namespaces {
        let own = [
            ("/dev", READ),
            ("/dev/console", OF_DEVICES),
            ("/dev/shm", write(version)),
        ];
        usual.extend(own);
    }
    usual
}

fn allow(ruleset: &OwnedFd, opened: impl AsFd, rights: u64) -> io::Result<()> {
    let mode = rustix::fs::fstat(&opened)?.st_mode;
    let rights = match FileType::from_raw_mode(mode) {
        FileType::Directory => rights,
        _ => rights & OF_FILES,
    };
    sys::landlock_allow(ruleset, opened, rights)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_handles_what_it_knows() {
        assert_eq!(handled(1), 0x1fff);
        assert_eq!(handled(2), 0x3fff);
        assert_eq!(handled(3), 0x7fff);
        assert_eq!(handled(4), 0x7fff);
        assert_eq!(handled(5), 0xffff);
        assert_eq!(handled(9), 0xffff);
    }

    #[test]
    fn reading_is_no_writing() {
        assert_eq!(READ & (WRITE_FILE | TRUNCATE | REFER), 0);
        assert_eq!(write(5) & READ, READ);
        assert_ne!(write(5) & REFER, 0);
    }
}
