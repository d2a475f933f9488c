//! Finds out what this host can enforce by trying it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outpost_process::ResourceLimits;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use super::bubblewrap::Mounter;
use super::helper::{
    CHANNEL_FD, Program, ReceivedReport, Report, Step, set_recv_timeout, socket_pair,
};
use super::launch::{MAX_OUTPUT, PreparedProcess, first_line, read_available};
use super::mounts::{Layout, Mount, PlannedMount};
use super::passed_files::stderr_pipe;
use super::remedy::Remedy;
use super::sandbox::Sandbox;
use super::supervisor;
use super::sys;
use crate::error::{in_parentheses, or_no_message};
use crate::{Access, Level, Network, Origin, PathState, Plan, Rule};

/// The timeout of a probe, which normally takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The lowest Landlock version that is accepted without namespaces: it can restrict truncation.
const MIN_LANDLOCK: u32 = 3;

/// The package that contains bwrap on most distributions.
const PACKAGE: &str = "bubblewrap";

/// The enforcement that this host supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSupport {
    /// The path of bubblewrap; empty at [`Level::Landlock`].
    pub bubblewrap: PathBuf,
    /// Bubblewrap's own version string; empty at [`Level::Landlock`].
    pub version: String,
    /// The process that makes the mounts.
    pub mounter: Mounter,
    /// The kernel's Landlock version; 0 if it has none.
    pub landlock: u32,
    /// Whether sandboxed processes without a network can have unix sockets: the server can make their
    /// connections.
    pub unix_sockets: bool,
}

/// The reason why this host can't sandbox processes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unenforceable {
    /// The server was configured without a helper command.
    #[error("this program has no sandbox helper to confine processes with")]
    NoHelper,
    /// The kernel's Landlock is missing or too old for [`Level::Landlock`].
    #[error(
        "sandbox.level is \"landlock\", which needs Landlock version {MIN_LANDLOCK}, but this kernel has version {found}"
    )]
    NoLandlock {
        /// The kernel's version; 0 if it has none.
        found: u32,
    },
    /// Bubblewrap isn't on the server's `PATH`.
    #[error("bwrap isn't found on the server's PATH: install the package {PACKAGE}")]
    NoBubblewrap,
    /// Bubblewrap lacks an option.
    #[error("{found} is too old: install version 0.8 or newer of the package {PACKAGE}")]
    OldBubblewrap {
        /// Its version string.
        found: String,
    },
    /// The host forbids namespaces.
    #[error("namespaces can't be used here ({message}): {remedy}")]
    Namespaces {
        /// Bubblewrap's error message.
        message: String,
        /// The remedy.
        remedy: Remedy,
    },
    /// The helper isn't allowed to mount in bubblewrap's namespaces.
    #[error("mounts can't be made in bubblewrap's namespaces ({message})")]
    Mounts {
        /// The error message.
        message: String,
    },
    /// The kernel has no seccomp filters, or forbids them.
    #[error("system calls can't be filtered here ({message})")]
    Seccomp {
        /// The error message.
        message: String,
    },
    /// The probe itself failed.
    #[error("sandbox preflight failed: {message}")]
    Probe {
        /// The error message.
        message: String,
    },
}

/// Probes the host by starting helpers with a plan that shows everything read-only. Takes some
/// milliseconds.
pub(super) fn probe(sandbox: &Sandbox) -> Result<HostSupport, Unenforceable> {
    let mut support = HostSupport {
        bubblewrap: PathBuf::new(),
        version: String::new(),
        mounter: Mounter::Bubblewrap,
        landlock: sys::landlock_version().unwrap_or_default(),
        // Until a probe shows otherwise.
        unix_sockets: sandbox.shared.level == Level::Namespaces,
    };
    if sandbox.shared.level == Level::Landlock {
        let found = support.landlock;
        if found < MIN_LANDLOCK {
            return Err(Unenforceable::NoLandlock { found });
        }
        attempt(sandbox, &support)?;
        return Ok(support);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bubblewrap = find_bubblewrap(std::env::split_paths(&path));
    support.bubblewrap = bubblewrap.ok_or(Unenforceable::NoBubblewrap)?;
    support.version = bubblewrap_version(&support.bubblewrap).map_err(failed)?;
    support.mounter = sandbox.shared.mounter.unwrap_or(Mounter::Helper);
    match attempt(sandbox, &support) {
        // Some hosts allow only bubblewrap to mount, and kernels before 5.12 lack `mount_setattr`.
        Err(Unenforceable::Mounts { message }) if sandbox.shared.mounter.is_none() => {
            tracing::warn!(
                error = %message,
                "the sandbox helper can't mount; falling back to mounts by bubblewrap"
            );
            support.mounter = Mounter::Bubblewrap;
            support.unix_sockets = attempt(sandbox, &support)?;
        }
        // Other errors may be transient and must not lead to the weaker mounts.
        result => support.unix_sockets = result?,
    }
    Ok(support)
}

/// Starts a helper by these means. Returns whether its connections can be supervised.
fn attempt(sandbox: &Sandbox, support: &HostSupport) -> Result<bool, Unenforceable> {
    let presence = PathState::Directory;
    let plan = Plan {
        rules: vec![Rule::new("/".into(), Access::Read, presence, Origin::Entry)],
        links: Vec::new(),
        network: Network::Restricted,
        listen: Vec::new(),
        cwd: "/".into(),
        warnings: Vec::new(),
    };
    // Only the root: what else is mounted on the host, such as another procfs, must neither fail
    // the probe nor choose the mounter.
    let mut layout = Layout::default();
    if sandbox.shared.level == Level::Namespaces {
        layout.mounts.mounts.push(PlannedMount {
            path: "/".into(),
            mount: Mount::Readable,
            identity: None,
        });
    }
    let no_limits = ResourceLimits::default();
    let prepared = sandbox.prepare_layout(support, &plan, layout, Program::none(), no_limits);
    let prepared = prepared.map_err(|error| failed(io::Error::other(error)))?;
    let PreparedProcess {
        command, channel, ..
    } = prepared;
    let (stderr, helper_stderr) = stderr_pipe().map_err(failed)?;
    let deadline = Instant::now() + TIMEOUT;
    let mut child = spawn(command, helper_stderr).map_err(failed)?;
    let received = channel.recv_within(TIMEOUT);
    let is_supervised = matches!(&received, Ok(Some(received)) if can_supervise(received));
    // The helper exits when the channel closes.
    drop(channel);
    let exits_by = received.is_ok().then_some(deadline);
    let exited = finish(&mut child, exits_by).map_err(failed)?;
    if let Ok(Some(received)) = &received
        && let Some(init) = &received.init
    {
        if !exited {
            // Bubblewrap was killed, which doesn't end what it started.
            let _ = rustix::process::pidfd_send_signal(init, Signal::KILL);
        }
        reap_inherited(init, deadline);
    }
    let step = match received.map_err(failed)?.map(|received| received.report) {
        Some(Report::Ready { .. }) => return Ok(is_supervised),
        Some(Report::Failed(step, errno)) => Some((step, errno)),
        None => None,
    };
    let stderr = first_line(&read_available(&stderr));
    Err(explain(support, step, &stderr))
}

/// Returns whether the helper has a seccomp listener, and its descriptors and memory can be accessed. A
/// security module may forbid that, and bubblewrap with a set-user-ID bit creates namespaces that aren't
/// ours.
fn can_supervise(helper: &ReceivedReport) -> bool {
    let can_access = |pid| supervisor::is_accessible(pid, CHANNEL_FD);
    helper.seccomp_listener.is_some() && helper.helper_pid.is_some_and(can_access)
}

fn failed(error: io::Error) -> Unenforceable {
    let message = match error.kind() {
        ErrorKind::WouldBlock => format!("it took longer than {TIMEOUT:?}"),
        _ => error.to_string(),
    };
    Unenforceable::Probe { message }
}

/// Spawns the wrapper of a sandboxed process, whose stdin and stdout are the null device.
#[expect(unsafe_code, reason = "descriptors are passed at fixed numbers")]
fn spawn(command: outpost_process::Command, stderr: OwnedFd) -> io::Result<Child> {
    let (program, args) = command.argv.split_first().ok_or(ErrorKind::InvalidInput)?;
    let mut probe = Command::new(program);
    probe.args(args).env_clear().envs(command.env);
    probe.arg0(command.arg0.as_ref().unwrap_or(program));
    probe
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let wrapper = command.wrapper.ok_or(ErrorKind::InvalidInput)?;
    let streams = 0..if wrapper.own.is_some() { 3 } else { 0 };
    probe.stderr(stderr);
    // Moved above the numbers that they are duplicated to.
    let passed = command.passed.iter();
    let passed = passed.map(|one| rustix::io::fcntl_dupfd_cloexec(one, 16));
    let passed = passed.collect::<Result<Vec<_>, Errno>>()?;
    let place = move || {
        let all = passed.iter().map(AsRawFd::as_raw_fd).chain(streams.clone());
        for (number, one) in (3..).zip(all) {
            // SAFETY: this process only executes a program. All that it still uses by number is the
            // pipe over which std reports a failed `execve`. If that is replaced, such a failure
            // shows as a helper that sent no report, or none that can be decoded.
            unsafe { sys::duplicate_to(one, number) }?;
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls. It neither allocates nor panics.
    unsafe { probe.pre_exec(place) };
    probe.spawn()
}

fn bubblewrap_version(bubblewrap: &Path) -> io::Result<String> {
    let (ours, theirs) = socket_pair()?;
    set_recv_timeout(&ours, TIMEOUT)?;
    let mut command = Command::new(bubblewrap);
    command.arg("--version").stdin(Stdio::null()).stdout(theirs);
    let deadline = Instant::now() + TIMEOUT;
    let mut child = command.current_dir("/").stderr(Stdio::null()).spawn()?;
    drop(command);
    let mut version = [0; MAX_OUTPUT];
    let length = rustix::io::retry_on_intr(|| rustix::io::read(&ours, &mut version));
    finish(&mut child, length.is_ok().then_some(deadline))?;
    Ok(first_line(&version[..length?]))
}

/// Waits for the end of a probe, and kills it at the deadline, or now if there is none. The caller
/// holds a lock, so the wait must end. Returns whether the probe exited without being killed.
fn finish(child: &mut Child, deadline: Option<Instant>) -> io::Result<bool> {
    let exited = deadline.is_some_and(|deadline| exits_by(child, deadline) == Ok(true));
    if !exited {
        let _ = child.kill();
    }
    child.wait().map(|_| exited)
}

/// Reaps the init process of bubblewrap's namespace. Bubblewrap exits before its init does, and a server
/// that is a child subreaper inherits the init. Otherwise it is not a child of this process.
fn reap_inherited(init: &OwnedFd, deadline: Instant) {
    if has_exited_by(init, deadline) == Ok(true) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = rustix::process::waitid(WaitId::PidFd(init.as_fd()), options);
    }
}

fn exits_by(child: &Child, deadline: Instant) -> Result<bool, Errno> {
    let pidfd = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    has_exited_by(&pidfd, deadline)
}

/// Whether the process of a pidfd has exited when the deadline passes.
fn has_exited_by(pidfd: &OwnedFd, deadline: Instant) -> Result<bool, Errno> {
    let ready = rustix::io::retry_on_intr(|| {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&left))
    })?;
    Ok(ready > 0)
}

/// The system's directories of programs.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/bin", "/bin"];

/// Returns whether a program is in one of the system's directories.
pub(super) fn is_in_system_directory(program: &Path) -> bool {
    let directory = program.parent();
    SYSTEM_DIRECTORIES
        .iter()
        .any(|one| directory == Some(Path::new(one)))
}

/// Finds bwrap in absolute directories. Relative ones are ignored: the server's working directory may be a
/// project.
fn find_bubblewrap(directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let directories = search_order(directories).into_iter();
    let mut candidates = directories.map(|directory| directory.join("bwrap"));
    candidates.find(|candidate| {
        let executable = rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK);
        candidate.is_file() && executable.is_ok()
    })
}

/// Sorts the system's directories first. A sandboxed process may be able to write in another one and
/// could replace bwrap for all later sandboxes.
fn search_order(directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let absolute = directories.filter(|directory| directory.is_absolute());
    let mut directories: Vec<_> = absolute.collect();
    directories.sort_by_key(|directory| {
        let mut system = SYSTEM_DIRECTORIES.iter();
        let rank = system.position(|one| directory == Path::new(one));
        rank.unwrap_or(SYSTEM_DIRECTORIES.len())
    });
    directories
}

/// Interprets the failed start of a helper.
fn explain(support: &HostSupport, step: Option<(Step, i32)>, stderr: &str) -> Unenforceable {
    let Some((step, errno)) = step else {
        let Some(message) = stderr.strip_prefix("bwrap: ") else {
            let message = or_no_message(stderr.to_owned());
            return Unenforceable::Probe { message };
        };
        if message.to_ascii_lowercase().contains("unknown option") {
            let found = support.version.clone();
            return Unenforceable::OldBubblewrap { found };
        }
        return Unenforceable::Namespaces {
            message: message.to_owned(),
            remedy: Remedy::find(|path| std::fs::read_to_string(path).ok()),
        };
    };
    let error = io::Error::from_raw_os_error(errno);
    let message = format!("cannot {step}{}: {error}", in_parentheses(stderr));
    match step {
        // Bubblewrap can do both instead of the helper.
        Step::Mounts | Step::UserNamespace
            if support.mounter == Mounter::Helper
                && [libc::EPERM, libc::EACCES, libc::ENOSYS].contains(&errno) =>
        {
            Unenforceable::Mounts { message }
        }
        Step::Privileges | Step::Landlock | Step::Seccomp => Unenforceable::Seccomp { message },
        _ => Unenforceable::Probe { message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(mounter: Mounter, step: Option<(Step, i32)>, stderr: &str) -> Unenforceable {
        let support = HostSupport {
            bubblewrap: "/usr/bin/bwrap".into(),
            version: "bubblewrap 0.4.0".to_owned(),
            mounter,
            landlock: 7,
            unix_sockets: true,
        };
        explain(&support, step, stderr)
    }

    #[test]
    fn only_forbidden_mounts_lead_to_the_other_mounter() {
        let of_helper = |step, errno| explained(Mounter::Helper, Some((step, errno)), "");
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            for step in [Step::Mounts, Step::UserNamespace] {
                let forbidden = of_helper(step, errno);
                assert!(matches!(forbidden, Unenforceable::Mounts { .. }), "{step}");
            }
            let kept = of_helper(Step::Privileges, errno);
            assert!(matches!(kept, Unenforceable::Seccomp { .. }), "{kept}");
        }
        let transient = of_helper(Step::Mounts, libc::ENOMEM);
        assert!(matches!(transient, Unenforceable::Probe { .. }));
        let seccomp = of_helper(Step::Seccomp, libc::EINVAL);
        assert!(matches!(seccomp, Unenforceable::Seccomp { .. }));
        let step = Some((Step::Privileges, libc::EPERM));
        let privileges = explained(Mounter::Bubblewrap, step, "");
        assert!(matches!(privileges, Unenforceable::Seccomp { .. }));
    }

    #[test]
    fn error_names_the_remedy() {
        let of_bubblewrap = |stderr| explained(Mounter::Helper, None, stderr).to_string();
        let old = of_bubblewrap("bwrap: Unknown option --disable-userns");
        assert!(old.contains("bubblewrap 0.4.0 is too old"), "{old}");
        let forbidden =
            of_bubblewrap("bwrap: No permissions to create new namespace, likely because");
        assert!(forbidden.contains("sysctl"), "{forbidden}");
        assert!(forbidden.contains("No permissions"), "{forbidden}");
        let none = Unenforceable::NoBubblewrap.to_string();
        assert!(none.contains("package bubblewrap"), "{none}");
    }

    #[test]
    fn error_has_the_output_of_the_helper() {
        let failed = |step, stderr| explained(Mounter::Helper, step, stderr).to_string();
        assert_eq!(
            failed(None, ""),
            "sandbox preflight failed: the sandbox's helper exited without a message"
        );
        let step = Some((Step::MountCheck, libc::ESTALE));
        let failed = failed(step, "/dev");
        assert!(failed.contains("cannot verify mounts (/dev): "), "{failed}");
    }

    #[test]
    fn system_directories_are_searched_first() {
        let order = |path: &str| {
            let ordered = search_order(std::env::split_paths(path));
            ordered
                .iter()
                .map(|directory| directory.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            order("/srv/agent/bin:/opt/bin:/bin:bin:/usr/bin"),
            ["/usr/bin", "/bin", "/srv/agent/bin", "/opt/bin"]
        );
        assert_eq!(order("/opt/bin:/nix/bin"), ["/opt/bin", "/nix/bin"]);
    }

    #[test]
    fn probe_that_does_not_exit_is_killed_at_the_deadline() {
        let mut sleeping = Command::new("sleep").arg("600").spawn().expect("spawn");
        let deadline = Instant::now() + Duration::from_millis(50);
        let exited = finish(&mut sleeping, Some(deadline)).expect("wait");
        assert!(!exited && Instant::now() >= deadline);
        let mut exiting = Command::new("true").spawn().expect("spawn");
        let deadline = Instant::now() + TIMEOUT;
        assert!(finish(&mut exiting, Some(deadline)).expect("wait"));
    }

    #[test]
    fn relative_directories_are_ignored() {
        assert_eq!(
            find_bubblewrap([PathBuf::from("usr/bin"), PathBuf::new()].into_iter()),
            None
        );
    }
}
