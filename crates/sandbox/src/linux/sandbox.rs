//! Prepares confined processes in the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use outpost_process::{Wrapper, WrapperStdio};
use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use tokio::sync::Semaphore;

use super::bubblewrap::{self, Mounter};
use super::helper::{
    self, Grant, HelperChannel, HelperCommand, HelperConfig, HelperStderr, MountSetup,
};
use super::host_resources::HostResources;
use super::launch::MAX_PREPARATIONS;
use super::mounts::{self, Layout, LocalHostPaths};
use super::placeholder::{LockCarriers, PlaceholderPaths, Placeholders};
use super::plan_check;
use super::preflight::{self, HostSupport, Unenforceable};
use super::prepare_error::{MAX_ARGUMENTS, PrepareError};
use crate::{Access, Level, Plan};

/// Confines processes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    command: HelperCommand,
    level: Level,
    /// The mounter, if it isn't to be probed.
    mounter: Option<Mounter>,
    /// The result of a successful probe. A failed one is repeated: the operator may have installed
    /// what was missing.
    support: Mutex<Option<HostSupport>>,
    placeholders: Placeholders,
    lock_carriers: LockCarriers,
    placeholder_paths: PlaceholderPaths,
    /// The shared libraries of this program, which the helper needs too.
    libraries: OnceLock<Vec<PathBuf>>,
    preparations: Arc<Semaphore>,
}

/// A program to execute inside the sandbox. The byte strings are sequences of NUL-terminated strings.
#[derive(Clone, Debug)]
pub struct Program {
    /// Paths to try, in this order.
    pub candidates: Vec<u8>,
    /// Arguments, starting with `argv[0]`. If empty, the helper serves requests on its channel instead
    /// of executing a program.
    pub argv: Vec<u8>,
    /// The whole environment.
    pub env: Vec<u8>,
    /// The working directory.
    pub cwd: PathBuf,
}

impl Program {
    /// Returns the configuration of a helper that serves requests instead of executing a program.
    #[must_use]
    pub fn none() -> Self {
        Program {
            candidates: Vec::new(),
            argv: Vec::new(),
            env: Vec::new(),
            cwd: PathBuf::from("/"),
        }
    }
}

/// The command that starts a confined program: bubblewrap, or the helper at
/// [`Level::Landlock`].
#[derive(Debug)]
pub struct PreparedCommand {
    /// The path of the program to start.
    pub program: PathBuf,
    /// Its arguments, starting with `argv[0]`.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its descriptors. With its own stdio, the streams of the confined program follow the passed
    /// descriptors.
    pub wrapper: Wrapper,
    /// To be kept until no process of the sandbox lives.
    pub resources: HostResources,
    /// Paths that exist inside only as masks over placeholders.
    pub absent: Vec<PathBuf>,
    pub(super) stderr: Option<HelperStderr>,
    pub(super) channel: HelperChannel,
}

impl Sandbox {
    /// Creates a sandbox that uses this helper at this level.
    #[must_use]
    pub fn new(command: HelperCommand, level: Level) -> Self {
        Self::with_mounter(None, command, level)
    }

    /// Creates a sandbox with a given mounter instead of a probed one, so that tests can cover both on
    /// any host.
    #[must_use]
    pub fn with_mounter(mounter: Option<Mounter>, command: HelperCommand, level: Level) -> Self {
        Self {
            shared: Arc::new(Shared {
                command,
                level,
                mounter,
                support: Mutex::default(),
                placeholders: Placeholders::default(),
                lock_carriers: LockCarriers::default(),
                placeholder_paths: PlaceholderPaths::default(),
                libraries: OnceLock::new(),
                preparations: Arc::new(Semaphore::new(MAX_PREPARATIONS)),
            }),
        }
    }

    /// Returns what this host can enforce. Blocks for some milliseconds to start probe processes, until a
    /// probe has succeeded once.
    ///
    /// # Errors
    /// If something is missing.
    pub fn preflight(&self) -> Result<HostSupport, Unenforceable> {
        let mut cached = self.shared.support.lock();
        if let Some(support) = &*cached {
            return Ok(support.clone());
        }
        let Shared {
            command,
            level,
            mounter,
            ..
        } = &*self.shared;
        let support = preflight::probe(command, *level, *mounter)?;
        Ok(cached.insert(support).clone())
    }

    /// Returns the paths where placeholders of this sandbox may exist. Doesn't block;
    /// [`is_placeholder`](crate::is_placeholder) checks each.
    #[must_use]
    pub fn placeholders(&self) -> Vec<PathBuf> {
        self.shared.placeholder_paths.paths()
    }

    pub(super) fn preparations(&self) -> &Arc<Semaphore> {
        &self.shared.preparations
    }

    /// Prepares a confined process. Blocks on the file system.
    ///
    /// # Errors
    /// If any part of the plan can't be enforced. Nothing is left on the host then.
    pub fn prepare(&self, plan: &Plan, program: Program) -> Result<PreparedCommand, PrepareError> {
        let support = self.preflight()?;
        let level = self.shared.level;
        let layout = match level {
            Level::Namespaces => {
                plan_check::check_namespaces(
                    plan,
                    self.shared.libraries.get_or_init(plan_check::libraries),
                )?;
                let placeholders = self.shared.placeholders.paths();
                mounts::lay_out(plan, &LocalHostPaths, &placeholders)
            }
            Level::Landlock => {
                plan_check::check_landlock(plan)?;
                Layout::default()
            }
        };
        let Layout {
            mounts,
            absent,
            expected_mounts,
        } = layout;
        let (arguments, mount_setup) = match (level, support.mounter) {
            (Level::Landlock, _) => (Vec::new(), None),
            (Level::Namespaces, Mounter::Helper) => {
                let setup = MountSetup {
                    mounts,
                    user: rustix::process::geteuid().as_raw(),
                    group: rustix::process::getegid().as_raw(),
                };
                (bubblewrap::for_helper(plan.network), Some(setup))
            }
            (Level::Namespaces, Mounter::Bubblewrap) => {
                (bubblewrap::with_mounts(&mounts, plan.network), None)
            }
        };
        if arguments.len() > MAX_ARGUMENTS {
            return Err(PrepareError::TooManyArguments(arguments.len()));
        }
        let grants = plan.rules.iter().filter(|rule| rule.access != Access::Deny);
        let config = HelperConfig {
            network: plan.network,
            level,
            mount_setup,
            cwd: program.cwd,
            candidates: program.candidates,
            argv: program.argv,
            env: program.env,
            expected_mounts,
            grants: grants
                .map(|rule| Grant {
                    path: rule.path.clone(),
                    access: rule.access,
                    // With namespaces the mount check compares identities.
                    identity: rule.identity.filter(|_| level == Level::Landlock),
                })
                .collect(),
        };
        let config = memfd(&config.encode()?)?;
        let (channel, helper_end) = HelperChannel::open(&config)?;
        let command = &self.shared.command;
        let (stderr, wrapper_stderr) = match level {
            Level::Namespaces => Some(HelperStderr::open()?),
            Level::Landlock => None,
        }
        .unzip();
        let (program, argv, passed) = match level {
            Level::Namespaces => {
                let helper = helper::open_program(&command.program).map_err(io::Error::from)?;
                let arguments = memfd(&nul_terminated(&arguments))?;
                let argv = helper::bubblewrap_argv(command);
                (
                    support.bubblewrap,
                    argv,
                    vec![helper_end, helper, arguments],
                )
            }
            Level::Landlock => (
                command.program.clone(),
                command.argv(helper::RUN),
                vec![helper_end],
            ),
        };
        // Last, so that nothing is left on the host if another step fails.
        let path_lease = self.shared.placeholder_paths.lease(&absent);
        let placeholders = self.shared.placeholders.acquire(&absent)?;
        let mut resources = HostResources::new(placeholders, path_lease, level);
        let wrapper_stdio = match wrapper_stderr {
            Some(stderr) => {
                let locks = resources.carry_locks(&self.shared.lock_carriers)?;
                Some(WrapperStdio {
                    held: locks.map(Arc::new),
                    stderr: Arc::new(stderr),
                })
            }
            None => None,
        };
        Ok(PreparedCommand {
            program,
            argv,
            env: HelperCommand::environment(),
            wrapper: Wrapper {
                passed: passed.into_iter().map(Arc::new).collect(),
                own: wrapper_stdio,
            },
            resources,
            absent,
            stderr,
            channel,
        })
    }
}

fn nul_terminated(arguments: &[OsString]) -> Vec<u8> {
    let bytes = arguments.iter().map(|argument| argument.as_encoded_bytes());
    bytes
        .flat_map(|argument| [argument, b"\0"])
        .flatten()
        .copied()
        .collect()
}

/// Creates a memfd with this content, positioned at its start.
fn memfd(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
