//! Finds the process of the user's server without its socket.
//!
//! A cleanup of temporary files may remove the runtime directory. The server notices and binds its
//! socket again; until then a command must not take it for stopped, or start another one.

use std::{fs, path::Path};

use super::launch::is_server;

/// The process id of a running server of this user on the socket with this URL.
pub(super) fn server_process(url: &str) -> Option<u32> {
    let uid = rustix::process::geteuid().as_raw();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.find(|id: &u32| {
        let directory = Path::new("/proc").join(id.to_string());
        let read = |name: &str| fs::read(directory.join(name)).unwrap_or_default();
        is_server(&read("cmdline"), url)
            && effective_uid(&read("status")) == Some(uid)
            && !is_in_other_mount_namespace(&directory)
    })
}

/// The effective user id in `/proc/PID/status`. The owner of the directory is root if the process
/// isn't dumpable.
fn effective_uid(status: &[u8]) -> Option<u32> {
    let status = str::from_utf8(status).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().nth(1)?.parse().ok()
}

/// Returns whether the paths of a process are those of another container.
fn is_in_other_mount_namespace(directory: &Path) -> bool {
    let namespace = |directory: &Path| fs::read_link(directory.join("ns/mnt"));
    // Unreadable if the process isn't dumpable.
    match (namespace(directory), namespace(Path::new("/proc/self"))) {
        (Ok(theirs), Ok(ours)) => theirs != ours,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_uid_is_read_from_status() {
        let status = b"Name:\toutpost\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n";
        assert_eq!(effective_uid(status), Some(2));
        assert_eq!(effective_uid(b"Name:\toutpost\n"), None);
        let own = fs::read("/proc/self/status").unwrap();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(effective_uid(&own), Some(uid));
    }

    #[test]
    fn other_processes_are_not_the_server() {
        assert_eq!(server_process("unix:///nowhere/outpost/server.sock"), None);
    }
}
