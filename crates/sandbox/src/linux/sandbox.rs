//! Preparing confined processes, in the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::MemfdFlags;

use super::bubblewrap::{self, Mounter};
use super::confined::{Confined, Own, Program};
use super::hold::Hold;
use super::host::ThisHost;
use super::keepsake::Keepsakes;
use super::layout::{self, Layout};
use super::line::Line;
use super::orders::{Grant, Orders, Scene};
use super::placeholder::{PlaceholderError, Placeholders};
use super::preflight::{self, Means, Unenforceable};
use super::said::Said;
use super::standing::Standing;
use super::{StageCommand, stage};
use crate::planning::Failing;
use crate::{Access, Level, Plan, Warning};

/// How many arguments bubblewrap takes at most, our own few included.
const ARGUMENTS: usize = 9000 - 16;

/// Confines processes; clones are the same.
#[derive(Clone, Debug)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    command: StageCommand,
    level: Level,
    /// Who mounts, if that isn't to be found out.
    mounter: Option<Mounter>,
    /// Once everything was found. What was missing may have been installed since.
    means: Mutex<Option<Means>>,
    placeholders: Placeholders,
    keepsakes: Keepsakes,
    standing: Standing,
    /// Of this program, which are those of the stages.
    libraries: OnceLock<Vec<PathBuf>>,
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Nothing can be enforced here.
    #[error(transparent)]
    Unenforceable(#[from] Unenforceable),
    /// The plan has more exceptions than there can be mounts.
    #[error(
        "the plan takes {0} arguments of bubblewrap, which accepts {ARGUMENTS}: deny less, or whole directories"
    )]
    TooLong(usize),
    /// The program could not even be started without it.
    #[error(
        "{0:?} can't be denied: the sandbox has one of its own there, which shows nothing of the host"
    )]
    Needed(PathBuf),
    /// The stages are programs too.
    #[error("the plan doesn't show {0:?}, which the sandbox's own helper needs to start")]
    Library(PathBuf),
    /// Whoever can open a device can do with it what it lets one do.
    #[error("{0:?} is a device, which can be granted to write or not at all")]
    Device(PathBuf),
    /// There are no mounts to hide it with.
    #[error("sandbox.level is \"landlock\", which can't deny {0:?} within what is granted")]
    Within(PathBuf),
    /// A path can't be kept absent.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// The system refused.
    #[error("cannot pass the plan on: {0}")]
    Os(#[from] io::Error),
}

impl PrepareError {
    /// On whose side it fails.
    #[must_use]
    pub fn failing(&self) -> Failing {
        match self {
            PrepareError::Unenforceable(_)
            | PrepareError::TooLong(_)
            | PrepareError::Needed(_)
            | PrepareError::Library(_)
            | PrepareError::Device(_)
            | PrepareError::Within(_) => Failing::Intent,
            PrepareError::Placeholder(_) | PrepareError::Os(_) => Failing::Preparation,
        }
    }
}

impl Sandbox {
    /// One whose stages are this program, by the means that the operator has chosen.
    #[must_use]
    pub fn new(command: StageCommand, level: Level) -> Self {
        Self::mounted_by(None, command, level)
    }

    /// The same, where somebody has decided who mounts. It is found out otherwise, and what can't be
    /// had on every host can be tried on any.
    #[must_use]
    pub fn mounted_by(mounter: Option<Mounter>, command: StageCommand, level: Level) -> Self {
        Self {
            shared: Arc::new(Shared {
                command,
                level,
                mounter,
                means: Mutex::default(),
                placeholders: Placeholders::default(),
                keepsakes: Keepsakes::default(),
                standing: Standing::default(),
                libraries: OnceLock::new(),
            }),
        }
    }

    /// What this host can enforce. The first time it takes some milliseconds, in which processes
    /// are started and waited for; so it does each time as long as something is missing.
    ///
    /// # Errors
    /// When something is missing.
    pub fn preflight(&self) -> Result<Means, Unenforceable> {
        let mut known = self
            .shared
            .means
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(means) = &*known {
            return Ok(means.clone());
        }
        let Shared {
            command,
            level,
            mounter,
            ..
        } = &*self.shared;
        let means = preflight::look(command, *level, *mounter)?;
        Ok(known.insert(means).clone())
    }

    /// Where something may stand just now that only keeps a path absent for a process of ours:
    /// [`is_placeholder`](crate::is_placeholder) tells. Waits for nothing.
    #[must_use]
    pub fn placeholders(&self) -> Vec<PathBuf> {
        self.shared.standing.paths()
    }

    /// Prepares a process. Looks at the file system and may take a moment.
    ///
    /// # Errors
    /// When any of the plan can't be enforced; nothing is left of it then.
    pub fn confine(&self, plan: &Plan, program: Program) -> Result<Confined, PrepareError> {
        let means = self.preflight()?;
        let level = self.shared.level;
        let layout = match level {
            Level::Namespaces => {
                check(plan, self.shared.libraries.get_or_init(libraries))?;
                let held = self.shared.placeholders.paths();
                layout::lay_out(plan, &ThisHost, &held)
            }
            Level::Landlock => {
                check_alone(plan)?;
                Layout::default()
            }
        };
        let Layout {
            mounts,
            absent,
            places,
        } = layout;
        let (arguments, scene) = match (level, means.mounter) {
            (Level::Landlock, _) => (Vec::new(), None),
            (Level::Namespaces, Mounter::Stage) => {
                let scene = Scene {
                    mounts,
                    user: rustix::process::geteuid().as_raw(),
                    group: rustix::process::getegid().as_raw(),
                };
                (bubblewrap::for_a_stage(plan.network), Some(scene))
            }
            (Level::Namespaces, Mounter::Bubblewrap) => {
                (bubblewrap::with_mounts(&mounts, plan.network), None)
            }
        };
        if arguments.len() > ARGUMENTS {
            return Err(PrepareError::TooLong(arguments.len()));
        }
        let grants = plan.rules.iter().filter(|rule| rule.access != Access::Deny);
        let orders = Orders {
            network: plan.network,
            level,
            scene,
            cwd: program.cwd,
            candidates: program.candidates,
            argv: program.argv,
            env: program.env,
            places,
            grants: grants
                .map(|rule| Grant {
                    path: rule.path.clone(),
                    access: rule.access,
                    // With namespaces the places are compared before, and some are new inside.
                    identity: rule.identity.filter(|_| level == Level::Landlock),
                })
                .collect(),
        };
        let orders = nameless(&orders.encode())?;
        let (line, theirs) = Line::open(&orders)?;
        let command = &self.shared.command;
        let (said, words) = match level {
            Level::Namespaces => Some(Said::open()?),
            Level::Landlock => None,
        }
        .unzip();
        let (program, argv, passed) = match level {
            Level::Namespaces => {
                let own = stage::open(&command.program).map_err(io::Error::from)?;
                let arguments = nameless(&in_a_run(&arguments))?;
                let argv = stage::carried(command);
                (means.bubblewrap, argv, vec![theirs, own, arguments])
            }
            Level::Landlock => (
                command.program.clone(),
                command.argv(stage::INNER),
                vec![theirs],
            ),
        };
        // Last, so that nothing is left where something else fails.
        let standing = self.shared.standing.share(&absent);
        let mut hold = Hold::new(self.shared.placeholders.hold(&absent)?, standing, level);
        let own = match words {
            Some(words) => Some(Own {
                kept: hold.keep(&self.shared.keepsakes)?,
                words,
            }),
            None => None,
        };
        Ok(Confined {
            program,
            argv,
            env: StageCommand::environment(),
            passed,
            own,
            said,
            line,
            hold,
            absent,
        })
    }
}

/// Each of them with the NUL byte that ends it.
fn in_a_run(arguments: &[OsString]) -> Vec<u8> {
    let each = arguments.iter().map(|argument| argument.as_encoded_bytes());
    each.flat_map(|argument| [argument, b"\0"])
        .flatten()
        .copied()
        .collect()
}

/// A file without a name that holds this, to be read from its beginning.
fn nameless(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// What the stages themselves need inside.
fn check(plan: &Plan, libraries: &[PathBuf]) -> Result<(), PrepareError> {
    let proc = Path::new("/proc");
    if plan
        .rules
        .iter()
        .any(|rule| rule.path == proc && rule.access == Access::Deny)
    {
        return Err(PrepareError::Needed(proc.to_owned()));
    }
    let mut rules = plan.rules.iter();
    if let Some(rule) = rules.find(|rule| layout::is_half_a_device(rule, &ThisHost)) {
        return Err(PrepareError::Device(rule.path.clone()));
    }
    let mut libraries = libraries.iter();
    match libraries.find(|library| plan.access(library) == Access::Deny) {
        Some(library) => Err(PrepareError::Library(library.clone())),
        None => Ok(()),
    }
}

/// Landlock's rules only ever grant. What may be read in something that may be written can then be
/// written, which is the weaker promise; what may not even be read is refused.
fn check_alone(plan: &Plan) -> Result<(), PrepareError> {
    for warning in &plan.warnings {
        // It is kept by keeping the file there what it is, which takes a mount.
        if let Warning::Blocked {
            path, denied: true, ..
        } = warning
        {
            return Err(PrepareError::Within(path.clone()));
        }
    }
    for (at, rule) in plan.rules.iter().enumerate() {
        let above = plan.rules[..at].iter().rev();
        let mut above = above.filter(|above| rule.path.starts_with(&above.path));
        let Some(above) = above.next().map(|above| above.access) else {
            continue;
        };
        match (above, rule.access) {
            (Access::Read | Access::Write, Access::Deny) => {
                return Err(PrepareError::Within(rule.path.clone()));
            }
            (Access::Write, Access::Read) => {
                tracing::warn!(path = ?rule.path, "sandbox.level is landlock: it can be written");
            }
            _ => {}
        }
    }
    Ok(())
}

/// The libraries of this program, which are those of the stages.
fn libraries() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<_> = maps
        .lines()
        .filter_map(|line| line.split_once('/'))
        .map(|(_, path)| PathBuf::from(format!("/{path}")))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.contains(".so"))
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}
