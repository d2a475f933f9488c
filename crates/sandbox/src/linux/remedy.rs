//! Finds the setting that forbids namespaces.

/// The change that enables namespaces on this host.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Remedy {
    /// Raise the limit of this kind of namespaces.
    #[error("set the sysctl user.max_{0}_namespaces above 1")]
    MaxNamespaces(&'static str),
    /// Enable unprivileged namespaces; a setting of Debian kernels.
    #[error("set the sysctl kernel.unprivileged_userns_clone to 1")]
    UnprivilegedClone,
    /// Lift a restriction by AppArmor; a setting of Ubuntu.
    #[error(
        "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or allow bwrap \
         in an AppArmor profile"
    )]
    AppArmor,
    /// Uncover `/proc`, parts of which a container engine or systemd has mounted over: the kernel mounts no
    /// other one then. Docker's default filter of system calls forbids namespaces besides.
    #[error(
        "uncover /proc: start the container with --security-opt systempaths=unconfined and \
         --security-opt seccomp=unconfined (Docker) or --security-opt unmask=ALL (podman), a \
         systemd unit without ProtectKernelTunables= and ProtectKernelLogs="
    )]
    CoveredProc,
    /// None of the known settings forbids them.
    #[error(
        "check that the sysctl user.max_user_namespaces is above 0, and that no container \
         or security module forbids unshare and mount"
    )]
    Unknown,
}

/// The kinds of namespaces that a sandbox needs; two nested ones of kind `user`.
const KINDS: [&str; 7] = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];

impl Remedy {
    /// Finds the setting that forbids namespaces. `read` reads a file.
    pub(super) fn find(read: impl Fn(&str) -> Option<String>) -> Self {
        let is = |path: &str, value: &str| read(path).is_some_and(|found| found.trim() == value);
        let is_short = |kind: &str| {
            let path = format!("/proc/sys/user/max_{kind}_namespaces");
            is(&path, "0") || is(&path, "1")
        };
        let apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        if let Some(kind) = KINDS.iter().find(|kind| is_short(kind)) {
            Remedy::MaxNamespaces(kind)
        } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            Remedy::UnprivilegedClone
        } else if is(apparmor, "1") {
            Remedy::AppArmor
        } else if read("/proc/self/mountinfo").is_some_and(|mounts| covers_proc(&mounts)) {
            Remedy::CoveredProc
        } else {
            Remedy::Unknown
        }
    }
}

/// Whether something is mounted over parts of `/proc` that are not empty.
fn covers_proc(mountinfo: &str) -> bool {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    let mut covered = points.filter_map(|point| point.strip_prefix("/proc/"));
    // A directory that the kernel keeps empty for this mount.
    covered.any(|path| path != "sys/fs/binfmt_misc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_names_the_setting() {
        let with = |which: &'static str, value: &'static str| {
            Remedy::find(|path| path.ends_with(which).then(|| value.to_owned()))
        };
        assert_eq!(
            with("max_user_namespaces", "0\n"),
            Remedy::MaxNamespaces("user")
        );
        let net = with("max_net_namespaces", "0\n");
        assert!(net.to_string().contains("user.max_net_namespaces"));
        assert_eq!(
            with("unprivileged_userns_clone", "0\n"),
            Remedy::UnprivilegedClone
        );
        assert_eq!(
            with("apparmor_restrict_unprivileged_userns", "1\n"),
            Remedy::AppArmor
        );
        assert_eq!(with("max_user_namespaces", "96349\n"), Remedy::Unknown);
        let mounts = |path: &str| {
            let text = format!("31 22 0:5 / {path} ro,relatime - proc proc rw\n");
            Remedy::find(|file| file.ends_with("mountinfo").then(|| text.clone()))
        };
        for path in ["/proc/sys", "/proc/kcore", "/proc/kmsg"] {
            assert_eq!(mounts(path), Remedy::CoveredProc);
        }
        for path in ["/proc", "/proc/sys/fs/binfmt_misc", "/srv/proc/sys"] {
            assert_eq!(mounts(path), Remedy::Unknown);
        }
    }
}
