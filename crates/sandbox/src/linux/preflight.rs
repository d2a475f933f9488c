//! What this host can enforce, found out by trying.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::bubblewrap::Mounter;
use super::stage;
use super::{StageCommand, stage::Probe};
use crate::Level;

/// How long a trial may take. It takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of what a trial says is of interest.
const WORDS: usize = 4096;

/// The version of Landlock that can stand alone.
const LEAST: u32 = 3;

/// The package that has it, on Debian and most others.
const PACKAGE: &str = "bubblewrap";

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// Where bubblewrap is; nowhere if the operator has chosen to do without.
    pub bubblewrap: PathBuf,
    /// Which one, in its own words, if there is one.
    pub version: String,
    /// Who mounts what is granted, in bubblewrap's namespaces.
    pub mounter: Mounter,
    /// Which Landlock the kernel has; zero is none.
    pub landlock: u32,
}

/// Why nothing can be enforced here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unenforceable {
    /// Whoever serves has no program to confine with.
    #[error("this program has no stage to confine processes with")]
    NoStages,
    /// Without namespaces Landlock is all there is, and it must know what can be truncated.
    #[error(
        "sandbox.level is \"landlock\" and this kernel has version {found} of it: it takes {LEAST}"
    )]
    NoLandlock {
        /// Zero is none.
        found: u32,
    },
    /// It isn't on the server's `PATH`.
    #[error("bwrap isn't found on the server's PATH: install the package {PACKAGE}")]
    NoBubblewrap,
    /// It lacks something.
    #[error("{found} is too old: install version 0.8 or newer of the package {PACKAGE}")]
    OldBubblewrap {
        /// What it calls itself.
        found: String,
    },
    /// The host forbids what it does.
    #[error("namespaces can't be used here ({said}): {remedy}")]
    Namespaces {
        /// What bubblewrap had to say.
        said: String,
        /// What to do about it.
        remedy: Remedy,
    },
    /// Nobody may mount in bubblewrap's namespaces but bubblewrap.
    #[error("mounts can't be made in bubblewrap's namespaces ({said})")]
    Mounts {
        /// What the system said.
        said: String,
    },
    /// The kernel has no filter for system calls, or not for us.
    #[error("system calls can't be filtered here ({said})")]
    Seccomp {
        /// What was said.
        said: String,
    },
    /// Our own stage didn't start, or didn't end.
    #[error("cannot try out what this host enforces: {said}")]
    Trial {
        /// What happened.
        said: String,
    },
}

/// What lets a host have namespaces.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// There may be none at all of this kind.
    MaxNamespaces(&'static str),
    /// Debian's switch.
    UnprivilegedClone,
    /// Ubuntu's.
    AppArmor,
    /// None of the known switches is off.
    Unknown,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remedy::MaxNamespaces(kind) => {
                return write!(
                    f,
                    "set the sysctl user.max_{kind}_namespaces to something above 1"
                );
            }
            Remedy::UnprivilegedClone => "set the sysctl kernel.unprivileged_userns_clone to 1",
            Remedy::AppArmor => {
                "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or allow bwrap \
                 in a profile of AppArmor"
            }
            Remedy::Unknown => {
                "see whether user.max_user_namespaces is a sysctl above 0 and whether a container \
                 or a security module forbids unshare and mount"
            }
        })
    }
}

/// The kinds of namespaces that a confined process gets. Of users there is one in the other.
const KINDS: [&str; 7] = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];

impl Remedy {
    /// Which switch is off, of those that `read` tells of.
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

/// Looks for bubblewrap and tries it, with every kind of wall. Takes some milliseconds.
pub(super) fn look(
    command: &StageCommand,
    level: Level,
    mounter: Option<Mounter>,
) -> Result<Means, Unenforceable> {
    match level {
        Level::Namespaces => look_for_namespaces(command, mounter),
        Level::Landlock => look_for_landlock(command),
    }
}

fn look_for_namespaces(
    command: &StageCommand,
    mounter: Option<Mounter>,
) -> Result<Means, Unenforceable> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bubblewrap = find(std::env::split_paths(&path)).ok_or(Unenforceable::NoBubblewrap)?;
    let version = run(Command::new(&bubblewrap).arg("--version"))?.stdout;
    let attempt = |mounter| {
        let mut argv = command.argv(stage::PROBE);
        argv.push(Probe::By(mounter).word().into());
        argv.push(bubblewrap.clone().into_os_string());
        argv.extend(command.args.iter().map(OsString::from));
        let heard = run(&mut trial(command, &argv))?;
        judge(&bubblewrap, mounter, version.trim(), &heard)
    };
    if let Some(mounter) = mounter {
        return attempt(mounter);
    }
    match attempt(Mounter::Stage) {
        // Some hosts let nobody mount but bubblewrap, and kernels before 5.12 don't know how.
        Err(Unenforceable::Mounts { said }) => {
            tracing::warn!(%said, "only bubblewrap may mount here, which keeps a little less");
            attempt(Mounter::Bubblewrap)
        }
        // Whatever else fails is no reason for less.
        found => found,
    }
}

fn look_for_landlock(command: &StageCommand) -> Result<Means, Unenforceable> {
    let mut argv = command.argv(stage::PROBED);
    argv.push(Probe::Alone.word().into());
    let heard = run(&mut trial(command, &argv))?;
    let means = judge(Path::new(""), Mounter::Bubblewrap, "", &heard)?;
    if means.landlock < LEAST {
        let found = means.landlock;
        return Err(Unenforceable::NoLandlock { found });
    }
    Ok(means)
}

fn trial(command: &StageCommand, argv: &[OsString]) -> Command {
    let mut trial = Command::new(&command.program);
    trial.arg0(&argv[0]).args(&argv[1..]).env_clear();
    trial.envs(StageCommand::environment());
    trial
}

/// The system's own folders.
const SYSTEM: [&str; 2] = ["/usr/bin", "/bin"];

/// Only absolute folders: a server may be standing in somebody's project.
fn find(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let candidates = in_order(folders);
    let mut candidates = candidates.into_iter().map(|folder| folder.join("bwrap"));
    candidates.find(|candidate| is_executable(candidate))
}

/// The system's folders first, wherever they stand among the others: what else is there may be a
/// folder that a confined process could write, and whoever is found is every sandbox from then on.
fn in_order(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut folders: Vec<_> = folders.filter(|folder| folder.is_absolute()).collect();
    let rank = |folder: &Path| SYSTEM.iter().position(|one| folder == Path::new(one));
    folders.sort_by_key(|folder| rank(folder).unwrap_or(SYSTEM.len()));
    folders
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// What a trial has said.
#[derive(Debug, Default)]
struct Said {
    stdout: String,
    stderr: String,
}

fn judge(
    bubblewrap: &Path,
    mounter: Mounter,
    version: &str,
    heard: &Said,
) -> Result<Means, Unenforceable> {
    let landlock = heard.stdout.trim().strip_prefix(stage::REPORTED.trim());
    if let Some(Ok(landlock)) = landlock.map(|version| version.trim().parse()) {
        return Ok(Means {
            bubblewrap: bubblewrap.to_owned(),
            version: version.to_owned(),
            mounter,
            landlock,
        });
    }
    let said = heard.stderr.trim().lines().next().unwrap_or_default();
    let said = said.strip_prefix("bwrap: ").unwrap_or(said).to_owned();
    Err(if said.to_ascii_lowercase().contains("unknown option") {
        Unenforceable::OldBubblewrap {
            found: version.to_owned(),
        }
    } else if let Some(said) = heard.stderr.strip_prefix(stage::FORBIDDEN) {
        let said = said.trim().to_owned();
        Unenforceable::Mounts { said }
    } else if heard.stderr.starts_with("seccomp") {
        Unenforceable::Seccomp { said }
    } else if heard.stderr.starts_with("bwrap: ") {
        let remedy = Remedy::find(|path| std::fs::read_to_string(path).ok());
        Unenforceable::Namespaces { said, remedy }
    } else {
        Unenforceable::Trial { said }
    })
}

fn run(command: &mut Command) -> Result<Said, Unenforceable> {
    let failed = |error: std::io::Error| Unenforceable::Trial {
        said: error.to_string(),
    };
    command.current_dir("/").stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let heard = listen(&mut child);
    if heard.is_none() {
        let _ = child.kill();
    }
    child.wait().map_err(failed)?;
    heard.ok_or_else(|| Unenforceable::Trial {
        said: format!("it took longer than {PATIENCE:?}"),
    })
}

/// Everything it writes, as far as it is of interest; none when it takes too long.
fn listen(child: &mut Child) -> Option<Said> {
    let until = Instant::now() + PATIENCE;
    let mut said = Said::default();
    let text = |stream: Option<File>| -> Option<String> {
        let mut stream = stream?;
        let mut bytes = vec![0; WORDS];
        let mut filled = 0;
        while filled < WORDS {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok()?;
            let mut watched = [PollFd::new(&stream, PollFlags::IN)];
            if rustix::event::poll(&mut watched, Some(&timeout)).ok()? == 0 {
                return None;
            }
            match stream.read(&mut bytes[filled..]).ok()? {
                0 => break,
                more => filled += more,
            }
        }
        Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
    };
    let owned = std::os::fd::OwnedFd::from;
    said.stdout = text(child.stdout.take().map(|one| File::from(owned(one))))?;
    let owned = std::os::fd::OwnedFd::from;
    said.stderr = text(child.stderr.take().map(|one| File::from(owned(one))))?;
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(stdout: &str, stderr: &str) -> Result<Means, Unenforceable> {
        let heard = Said {
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        let bubblewrap = Path::new("/usr/bin/bwrap");
        judge(bubblewrap, Mounter::Stage, "bubblewrap 0.4.0", &heard)
    }

    #[test]
    fn a_trial_that_comes_through_tells_of_landlock() {
        let means = verdict("landlock 7\n", "").expect("all is there");
        assert_eq!(means.landlock, 7);
        assert_eq!(
            verdict("landlock 0\n", "").map(|means| means.landlock),
            Ok(0)
        );
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let old = verdict("", "bwrap: Unknown option --disable-userns\n");
        let old = old.expect_err("too old").to_string();
        assert!(old.contains("bubblewrap 0.4.0 is too old"), "{old}");
        let said = "bwrap: No permissions to create new namespace, likely because";
        let forbidden = verdict("", said).expect_err("forbidden").to_string();
        assert!(forbidden.contains("sysctl"), "{forbidden}");
        assert!(forbidden.contains("No permissions"), "{forbidden}");
        let none = Unenforceable::NoBubblewrap.to_string();
        assert!(none.contains("package bubblewrap"), "{none}");
    }

    #[test]
    fn the_switch_that_is_off_is_named() {
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

    /// A planted one would be every sandbox after the next start.
    #[test]
    fn the_systems_own_comes_first() {
        let order = |path: &str| {
            let folders = std::env::split_paths(path);
            let ordered = in_order(folders);
            ordered
                .iter()
                .map(|one| one.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            order("/srv/agent/bin:/opt/bin:/bin:bin:/usr/bin"),
            ["/usr/bin", "/bin", "/srv/agent/bin", "/opt/bin"]
        );
        assert_eq!(order("/opt/bin:/nix/bin"), ["/opt/bin", "/nix/bin"]);
    }

    #[test]
    fn nothing_is_found_in_a_folder_relative_to_somewhere() {
        assert_eq!(
            find([PathBuf::from("usr/bin"), PathBuf::new()].into_iter()),
            None
        );
    }
}
