//! Drops the privileges that the helper needs for mounting and the program must not have.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::linux::sys;

/// Moves to a nested user namespace as `user` and `group`. The outer namespace owns the mounts, so
/// they can't be changed from the nested one, and no further namespace can be created in it.
/// `proc` is a writable mount of `/proc`.
pub(super) fn enter_user_namespace(proc: &OwnedFd, user: u32, group: u32) -> Result<(), Errno> {
    // Allows the namespace created next and no other.
    write(proc, "sys/user/max_user_namespaces", "1")?;
    sys::unshare_user_namespace()?;
    write(proc, "self/setgroups", "deny")?;
    write(proc, "self/uid_map", &format!("{user} 0 1"))?;
    write(proc, "self/gid_map", &format!("{group} 0 1"))
}

/// Clears all capability sets and sets `no_new_privs`. This also applies without namespaces, where
/// the capabilities of root would be valid on the host.
pub(super) fn drop_all() -> Result<(), Errno> {
    match sys::drop_bounding_set() {
        // Without CAP_SETPCAP there are no capabilities to drop.
        Err(Errno::PERM) => {}
        dropped => dropped?,
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
    if rustix::io::write(&file, text.as_bytes())? == text.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}
