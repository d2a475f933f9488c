//! Giving up what a stage can do and the program mustn't.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::linux::sys;

/// Leaves the namespace of users that owns the mounts for one below it, as this user again, from which
/// there is no way to another. `proc` can be written to.
pub(super) fn leave(proc: &OwnedFd, user: u32, group: u32) -> Result<(), Errno> {
    // One more, which is ours; none for whoever comes after us.
    write(proc, "sys/user/max_user_namespaces", "1")?;
    sys::leave_for_new_users()?;
    write(proc, "self/setgroups", "deny")?;
    write(proc, "self/uid_map", &format!("{user} 0 1"))?;
    write(proc, "self/gid_map", &format!("{group} 0 1"))
}

/// No capability in any set, and no program that gives one. Without namespaces as well, where they would
/// be the host's: whoever is root there is nobody but the owner of root's files from then on.
pub(super) fn give_up() -> Result<(), Errno> {
    match sys::forgo_capabilities() {
        // Who may not even do that has none.
        Err(Errno::PERM) => {}
        forgone => forgone?,
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)?;
    rustix::thread::set_no_new_privs(true)
}

fn write(proc: &OwnedFd, name: &str, text: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, name, flags, Mode::empty())?;
    match rustix::io::write(&file, text.as_bytes())? == text.len() {
        true => Ok(()),
        false => Err(Errno::IO),
    }
}
