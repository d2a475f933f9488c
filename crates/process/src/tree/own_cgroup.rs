//! Locates the cgroup of this process in the file system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Finds the version 2 cgroup of this process from `/proc/self/cgroup` and `/proc/self/mountinfo`.
/// Returns `None` if it is not mounted visibly. It may be mounted anywhere, also beside version 1.
pub(crate) fn path() -> Option<PathBuf> {
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    locate(&cgroup, &mounts)
}

fn locate(cgroup: &str, mounts: &[u8]) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts
        .split(|byte| *byte == b'\n')
        .find_map(|line| directory(own, line))
}

/// Parses `36 35 0:28 /root /mount/point rw,… optional… - cgroup2 source options`.
fn directory(own: &str, line: &[u8]) -> Option<PathBuf> {
    let mut fields = line.split(|byte| *byte == b' ');
    let root = String::from_utf8(unescape(fields.nth(3)?)).ok()?;
    let mount = unescape(fields.next()?);
    if fields.find(|field| *field == b"-").and(fields.next()) != Some(b"cgroup2") {
        return None;
    }
    // A root of `/..` lies outside this cgroup namespace.
    let below = match root.as_str() {
        "/" => own,
        root => own
            .strip_prefix(root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
    };
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    let mount = PathBuf::from(OsString::from_vec(mount));
    Some(mount.join(below.trim_start_matches('/')))
}

/// Decodes the octal escapes (`\040`) that the kernel uses for blanks and other special characters.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        rest = after;
        if let (
            b'\\',
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ],
        ) = (first, after)
        {
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(cgroup: &str, mounts: &str) -> Option<String> {
        let path = locate(cgroup, mounts.as_bytes())?;
        Some(path.to_str()?.to_owned())
    }

    #[test]
    fn finds_version_2_beside_version_1() {
        let cgroup = "4:memory:/a/b\n0::/\n";
        let mounts = "\
            31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:1 - cgroup2 cgroup2 rw\n";
        let found = located(cgroup, mounts);
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup/unified/"));
    }

    #[test]
    fn respects_root_of_mount() {
        let mounts = "41 31 0:38 /docker/x /cg\\040two rw - cgroup2 cgroup2 rw\n";
        let found = located("0::/docker/x/y\n", mounts);
        assert_eq!(found.as_deref(), Some("/cg two/y"));
        assert_eq!(located("0::/docker/xy\n", mounts), None);
        assert_eq!(located("0::/elsewhere\n", mounts), None);
    }

    #[test]
    fn rejects_paths_outside_the_namespace() {
        let mounts = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(located("0::/../x\n", mounts), None);
        assert_eq!(located("4:memory:/\n", mounts), None);
        assert_eq!(located("0::/\n", ""), None);
    }
}
