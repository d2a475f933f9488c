//! Finds out what this host can enforce by trying it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::bubblewrap::Mounter;
use super::helper::{self, HelperCommand, Probe};
use crate::Level;

/// The timeout of a probe, which normally takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a probe's output is read.
const MAX_OUTPUT: usize = 4096;

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
}

/// The reason why this host can't confine processes.
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
    #[error("cannot probe what this host can enforce: {message}")]
    Probe {
        /// The error message.
        message: String,
    },
}

/// The change that enables namespaces on this host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Raise the limit of this kind of namespaces.
    MaxNamespaces(&'static str),
    /// Enable unprivileged namespaces; a setting of Debian kernels.
    UnprivilegedClone,
    /// Lift a restriction by AppArmor; a setting of Ubuntu.
    AppArmor,
    /// None of the known settings forbids them.
    Unknown,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remedy::MaxNamespaces(kind) => {
                return write!(f, "set the sysctl user.max_{kind}_namespaces above 1");
            }
            Remedy::UnprivilegedClone => "set the sysctl kernel.unprivileged_userns_clone to 1",
            Remedy::AppArmor => {
                "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or allow bwrap \
                 in an AppArmor profile"
            }
            Remedy::Unknown => {
                "check that the sysctl user.max_user_namespaces is above 0, and that no container \
                 or security module forbids unshare and mount"
            }
        })
    }
}

/// The kinds of namespaces that a sandbox needs; two nested ones of kind `user`.
const KINDS: [&str; 7] = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];

impl Remedy {
    /// Finds the setting that forbids namespaces. `read` reads a file.
    fn find(read: impl Fn(&str) -> Option<String>) -> Self {
        let is = |path: &str, value: &str| read(path).is_some_and(|found| found.trim() == value);
        let is_short = |kind: &str| {
            let path = format!("/proc/sys/user/max_{kind}_namespaces");
            is(&path, "0") || is(&path, "1")
        };
        if let Some(kind) = KINDS.iter().find(|kind| is_short(kind)) {
            Remedy::MaxNamespaces(kind)
        } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            Remedy::UnprivilegedClone
        } else if is(
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        ) {
            Remedy::AppArmor
        } else {
            Remedy::Unknown
        }
    }
}

/// Probes the host at a level. Takes some milliseconds.
pub(super) fn probe(
    command: &HelperCommand,
    level: Level,
    mounter: Option<Mounter>,
) -> Result<HostSupport, Unenforceable> {
    match level {
        Level::Namespaces => probe_namespaces(command, mounter),
        Level::Landlock => probe_landlock(command),
    }
}

fn probe_namespaces(
    command: &HelperCommand,
    mounter: Option<Mounter>,
) -> Result<HostSupport, Unenforceable> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bubblewrap =
        find_bubblewrap(std::env::split_paths(&path)).ok_or(Unenforceable::NoBubblewrap)?;
    let version = run(Command::new(&bubblewrap).arg("--version"))?.stdout;
    let attempt = |mounter| {
        let mut argv = command.argv(helper::PROBE);
        argv.push(Probe::Namespaces(mounter).argument().into());
        argv.push(bubblewrap.clone().into_os_string());
        argv.extend(command.args.iter().map(OsString::from));
        let output = run(&mut probe_command(command, &argv))?;
        evaluate(&bubblewrap, mounter, version.trim(), &output)
    };
    if let Some(mounter) = mounter {
        return attempt(mounter);
    }
    match attempt(Mounter::Helper) {
        // Some hosts allow only bubblewrap to mount, and kernels before 5.12 lack `mount_setattr`.
        Err(Unenforceable::Mounts { message }) => {
            tracing::warn!(
                error = %message,
                "the sandbox helper can't mount; falling back to mounts by bubblewrap"
            );
            attempt(Mounter::Bubblewrap)
        }
        // Other errors may be transient and must not lead to the weaker mounts.
        result => result,
    }
}

fn probe_landlock(command: &HelperCommand) -> Result<HostSupport, Unenforceable> {
    let mut argv = command.argv(helper::PROBE_INSIDE);
    argv.push(Probe::Landlock.argument().into());
    let output = run(&mut probe_command(command, &argv))?;
    let support = evaluate(Path::new(""), Mounter::Bubblewrap, "", &output)?;
    if support.landlock < MIN_LANDLOCK {
        let found = support.landlock;
        return Err(Unenforceable::NoLandlock { found });
    }
    Ok(support)
}

fn probe_command(command: &HelperCommand, argv: &[OsString]) -> Command {
    let mut probe = Command::new(&command.program);
    probe.arg0(&argv[0]).args(&argv[1..]).env_clear();
    probe.envs(HelperCommand::environment());
    probe
}

/// The system's directories of programs.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/bin", "/bin"];

/// Finds bwrap in absolute directories. Relative ones are ignored: the server's working directory may be a
/// project.
fn find_bubblewrap(directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut candidates = search_order(directories)
        .into_iter()
        .map(|directory| directory.join("bwrap"));
    candidates.find(|candidate| is_executable(candidate))
}

/// Sorts the system's directories first. A confined process may be able to write in another one and
/// could replace bwrap for all later sandboxes.
fn search_order(directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut directories: Vec<_> = directories
        .filter(|directory| directory.is_absolute())
        .collect();
    let rank = |directory: &Path| {
        let mut system = SYSTEM_DIRECTORIES.iter();
        system.position(|one| directory == Path::new(one))
    };
    directories.sort_by_key(|directory| rank(directory).unwrap_or(SYSTEM_DIRECTORIES.len()));
    directories
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The output of a probe.
#[derive(Debug)]
struct ProbeOutput {
    stdout: String,
    stderr: String,
}

/// Interprets the output of a probe.
fn evaluate(
    bubblewrap: &Path,
    mounter: Mounter,
    version: &str,
    output: &ProbeOutput,
) -> Result<HostSupport, Unenforceable> {
    let landlock = output.stdout.trim().strip_prefix(helper::REPORTED.trim());
    if let Some(Ok(landlock)) = landlock.map(|version| version.trim().parse()) {
        return Ok(HostSupport {
            bubblewrap: bubblewrap.to_owned(),
            version: version.to_owned(),
            mounter,
            landlock,
        });
    }
    let message = output.stderr.trim().lines().next().unwrap_or_default();
    let message = message
        .strip_prefix("bwrap: ")
        .unwrap_or(message)
        .to_owned();
    Err(if message.to_ascii_lowercase().contains("unknown option") {
        Unenforceable::OldBubblewrap {
            found: version.to_owned(),
        }
    } else if let Some(message) = output.stderr.strip_prefix(helper::FORBIDDEN) {
        let message = message.trim().to_owned();
        Unenforceable::Mounts { message }
    } else if output.stderr.starts_with("seccomp") {
        Unenforceable::Seccomp { message }
    } else if output.stderr.starts_with("bwrap: ") {
        let remedy = Remedy::find(|path| std::fs::read_to_string(path).ok());
        Unenforceable::Namespaces { message, remedy }
    } else {
        Unenforceable::Probe { message }
    })
}

fn run(command: &mut Command) -> Result<ProbeOutput, Unenforceable> {
    let failed = |error: std::io::Error| Unenforceable::Probe {
        message: error.to_string(),
    };
    command.current_dir("/").stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = read_output(&mut child);
    if output.is_none() {
        let _ = child.kill();
    }
    child.wait().map_err(failed)?;
    output.ok_or_else(|| Unenforceable::Probe {
        message: format!("it took longer than {TIMEOUT:?}"),
    })
}

/// Reads stdout and then stderr up to [`MAX_OUTPUT`]. Returns none on timeout.
fn read_output(child: &mut Child) -> Option<ProbeOutput> {
    let deadline = Instant::now() + TIMEOUT;
    let read = |stream: Option<File>| -> Option<String> {
        let mut stream = stream?;
        let mut bytes = vec![0; MAX_OUTPUT];
        let mut filled = 0;
        while filled < MAX_OUTPUT {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok()?;
            let mut polled = [PollFd::new(&stream, PollFlags::IN)];
            if rustix::event::poll(&mut polled, Some(&timeout)).ok()? == 0 {
                return None;
            }
            match stream.read(&mut bytes[filled..]).ok()? {
                0 => break,
                more => filled += more,
            }
        }
        Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
    };
    let stdout = child
        .stdout
        .take()
        .map(|pipe| File::from(OwnedFd::from(pipe)));
    let stderr = child
        .stderr
        .take()
        .map(|pipe| File::from(OwnedFd::from(pipe)));
    Some(ProbeOutput {
        stdout: read(stdout)?,
        stderr: read(stderr)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(stdout: &str, stderr: &str) -> Result<HostSupport, Unenforceable> {
        let output = ProbeOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        let bubblewrap = Path::new("/usr/bin/bwrap");
        evaluate(bubblewrap, Mounter::Helper, "bubblewrap 0.4.0", &output)
    }

    #[test]
    fn successful_probe_reports_landlock_version() {
        let support = evaluated("landlock 7\n", "").expect("supported");
        assert_eq!(support.landlock, 7);
        assert_eq!(
            evaluated("landlock 0\n", "").map(|support| support.landlock),
            Ok(0)
        );
    }

    #[test]
    fn error_names_the_remedy() {
        let old = evaluated("", "bwrap: Unknown option --disable-userns\n");
        let old = old.expect_err("too old").to_string();
        assert!(old.contains("bubblewrap 0.4.0 is too old"), "{old}");
        let stderr = "bwrap: No permissions to create new namespace, likely because";
        let forbidden = evaluated("", stderr).expect_err("forbidden").to_string();
        assert!(forbidden.contains("sysctl"), "{forbidden}");
        assert!(forbidden.contains("No permissions"), "{forbidden}");
        let none = Unenforceable::NoBubblewrap.to_string();
        assert!(none.contains("package bubblewrap"), "{none}");
    }

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
    fn relative_directories_are_ignored() {
        assert_eq!(
            find_bubblewrap([PathBuf::from("usr/bin"), PathBuf::new()].into_iter()),
            None
        );
    }
}
