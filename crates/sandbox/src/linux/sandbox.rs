//! Prepares confined processes in the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use outpost_process::{Command, Stdio, Wrapper, WrapperStdio};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::pipe::PipeFlags;
use tokio::sync::Semaphore;

use super::bubblewrap::{self, Mounter};
use super::helper::{self, Grant, HelperChannel, HelperCommand, HelperConfig, Program};
use super::host_resources::HostResources;
use super::launch::PreparedProcess;
use super::mounts::{self, Layout, LocalHostPaths};
use super::placeholder::Placeholders;
use super::plan_check;
use super::preflight::{self, HostSupport, Unenforceable};
use crate::error::{MAX_ARGUMENTS, PrepareError};
use crate::{Access, Level, Plan};

/// How many processes are prepared at the same time. Preparation is CPU-bound.
pub(super) const MAX_PREPARATIONS: usize = 8;

/// Confines processes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    command: HelperCommand,
    pub(super) level: Level,
    /// The mounter, if it isn't to be probed.
    pub(super) mounter: Option<Mounter>,
    /// The result of a successful probe. A failed one is repeated: the operator may have installed
    /// what was missing.
    support: Mutex<Option<HostSupport>>,
    placeholders: Placeholders,
    /// The shared libraries of this program, which the helper needs too.
    libraries: OnceLock<Vec<PathBuf>>,
    pub(super) preparations: Arc<Semaphore>,
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
        Ok(cached.insert(preflight::probe(self)?).clone())
    }

    /// Returns the paths where placeholders of this sandbox may exist. Doesn't block;
    /// [`is_placeholder`](crate::is_placeholder) checks each.
    #[must_use]
    pub fn placeholders(&self) -> Vec<PathBuf> {
        self.shared.placeholders.possible_paths()
    }

    /// Prepares a confined process. Blocks on the file system.
    ///
    /// # Errors
    /// If any part of the plan can't be enforced. Nothing is left on the host then.
    pub fn prepare(&self, plan: &Plan, program: Program) -> Result<PreparedProcess, PrepareError> {
        self.prepare_with(&self.preflight()?, plan, program)
    }

    /// Prepares a confined process by given means.
    pub(super) fn prepare_with(
        &self,
        support: &HostSupport,
        plan: &Plan,
        program: Program,
    ) -> Result<PreparedProcess, PrepareError> {
        let Shared { command, level, .. } = &*self.shared;
        let level = *level;
        let Layout { mounts, absent } = match level {
            Level::Namespaces => {
                let libraries = self.shared.libraries.get_or_init(plan_check::libraries);
                plan_check::check_namespaces(plan, libraries)?;
                let placeholders = self.shared.placeholders.paths();
                mounts::lay_out(plan, &LocalHostPaths, &placeholders)
            }
            Level::Landlock => {
                plan_check::check_landlock(plan)?;
                Layout::default()
            }
        };
        let (options, user_after_mounts) = match (level, support.mounter) {
            (Level::Landlock, _) => (Vec::new(), None),
            (Level::Namespaces, Mounter::Helper) => {
                let user = rustix::process::geteuid().as_raw();
                let group = rustix::process::getegid().as_raw();
                (bubblewrap::for_helper(plan.network), Some((user, group)))
            }
            (Level::Namespaces, Mounter::Bubblewrap) => {
                (bubblewrap::with_mounts(&mounts, plan.network), None)
            }
        };
        if options.len() > MAX_ARGUMENTS {
            return Err(PrepareError::TooManyArguments(options.len()));
        }
        let grants = plan.rules.iter().filter(|rule| rule.access != Access::Deny);
        let grants = grants.map(|rule| Grant {
            path: rule.path.clone(),
            access: rule.access,
            // With namespaces the mount check compares identities.
            identity: rule.identity.filter(|_| level == Level::Landlock),
        });
        let config = HelperConfig {
            network: plan.network,
            level,
            user_after_mounts,
            mounts,
            grants: grants.collect(),
            program,
        };
        let (channel, helper_end) = HelperChannel::open(&memfd(&helper::encode(&config)?)?)?;
        let mut passed = vec![helper_end];
        let (wrapper, mut argv, stderr) = match level {
            Level::Namespaces => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let helper = rustix::fs::open(&command.program, flags, Mode::empty());
                passed.push(helper.map_err(io::Error::from)?);
                passed.push(memfd(&nul_terminated(&options))?);
                let argv = command.bubblewrap_argv();
                (&support.bubblewrap, argv, Some(stderr_pipe()?))
            }
            Level::Landlock => (&command.program, command.argv(), None),
        };
        let arg0 = std::mem::replace(&mut argv[0], wrapper.clone().into_os_string());
        // Last, so that nothing is left on the host if another step fails.
        let mut placeholders = self.shared.placeholders.acquire(&absent)?;
        let (stderr, own) = match stderr {
            Some((ours, theirs)) => {
                let held = placeholders.carry_locks()?.map(Arc::new);
                let stderr = Arc::new(theirs);
                (Some(ours), Some(WrapperStdio { held, stderr }))
            }
            None => (None, None),
        };
        let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
        Ok(PreparedProcess {
            command: Command {
                argv,
                arg0: Some(arg0),
                cwd: "/".into(),
                env: HelperCommand::environment(),
                stdio: Stdio::Pipes { stdin: false },
                wrapper: Some(Wrapper {
                    passed: passed.into_iter().map(Arc::new).collect(),
                    own,
                }),
            },
            resources: HostResources::new(placeholders, level),
            denied: denied.map(|rule| rule.path.clone()).collect(),
            absent,
            program: OsString::new(),
            cwd: config.program.cwd,
            stderr,
            channel,
        })
    }
}

fn nul_terminated(arguments: &[OsString]) -> Vec<u8> {
    let bytes = arguments.iter().map(|argument| argument.as_encoded_bytes());
    let terminated = bytes.flat_map(|argument| [argument, b"\0"]);
    terminated.flatten().copied().collect()
}

/// Creates a memfd with this content, positioned at its start.
fn memfd(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Creates a pipe for the stderr of bubblewrap and the helper, which is separate from the program's. The
/// first end doesn't block when it is read.
pub(super) fn stderr_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}
