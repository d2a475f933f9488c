//! Plans and prepares sandboxed processes in the server.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outpost_process::{Command, ResourceLimits, Rlimits, SpawnError, Stdio, Wrapper, WrapperStdio};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use super::bubblewrap::{self, Mounter};
use super::grant_record::GrantRecord;
use super::helper::{self, Grant, HelperChannel, HelperCommand, HelperConfig, Program};
use super::host_resources::HostResources;
use super::launch::{LaunchError, PreparedHelper, PreparedProcess};
use super::libraries::{self, Library};
use super::mounts::{self, Layout, LocalHostPaths};
use super::passed_files::{memfd, stderr_pipe};
use super::placeholder::{Placeholders, is_placeholder};
use super::plan_check;
use super::preflight::{self, HostSupport, Unenforceable};
use super::preparations::Preparations;
use super::turns::TurnKey;
use crate::error::{MAX_ARGUMENTS, PrepareError};
use crate::planning::ProcessDirectories;
use crate::policy::Policy;
use crate::{Access, Floor, Level, Plan, Warning};

/// The processes of bubblewrap beside the program: one outside of the PID namespace, one as its init.
const BWRAP_PROCESSES: u64 = 2;

/// The policy that a process is sandboxed by.
#[derive(Clone, Debug)]
pub struct SandboxRequest {
    /// The policy.
    pub policy: Policy,
    /// The `TMPDIR` of the process, for policies that grant it.
    pub tmpdir: Option<OsString>,
    /// Ports of the process's own loopback address whose connections the server accepts. If there are any,
    /// they are its only network, whatever the policy grants.
    pub listen: Vec<u16>,
    /// The client that asks, by which preparations take turns.
    pub client: TurnKey,
    /// The minimum sandbox. A policy that grants more is refused.
    pub floor: Option<Arc<Floor>>,
}

/// The access of a helper that serves file operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerAccess {
    /// Only read; the policy's writable paths are read-only.
    Read,
    /// Read and write, as the policy allows.
    Write,
}

/// Confines processes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) shared: Arc<Shared>,
}

/// The configuration and the probed features of a sandbox, shared by its clones.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) command: HelperCommand,
    pub(super) level: Level,
    /// The mounter, if it isn't to be probed.
    pub(super) mounter: Option<Mounter>,
    /// The result of a successful probe. A failed one is repeated: the operator may have installed
    /// what was missing.
    pub(super) support: Mutex<Option<HostSupport>>,
    placeholders: Placeholders,
    /// Directories that were ever granted for writing.
    pub(super) granted: GrantRecord,
    /// The helper's program, if it is known.
    pub(super) program: Option<PathBuf>,
    /// The shared libraries of this program, which the helper needs too.
    libraries: Vec<Library>,
    preparations: Preparations,
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
                granted: GrantRecord::new(command.grant_record.clone()),
                placeholders: Placeholders::new(command.clone()),
                program: command.program.canonicalize().ok(),
                command,
                level,
                mounter,
                support: Mutex::default(),
                libraries: libraries::open_loaded(),
                preparations: Preparations::new(),
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
    /// [`is_placeholder`] checks each.
    #[must_use]
    pub fn placeholders(&self) -> Vec<PathBuf> {
        self.shared.placeholders.possible_paths()
    }

    /// Returns what this host can enforce, without blocking the caller.
    ///
    /// # Errors
    /// If something is missing.
    pub async fn support(&self) -> Result<HostSupport, Unenforceable> {
        let sandbox = self.clone();
        let probe = tokio::task::spawn_blocking(move || sandbox.preflight());
        probe.await.map_err(|error| Unenforceable::Probe {
            message: error.to_string(),
        })?
    }

    /// Plans and prepares a sandboxed process, within `limit`.
    ///
    /// The work runs on a blocking thread and continues there after a timeout, so that a hanging file
    /// system blocks that thread and not the client.
    ///
    /// # Errors
    /// If the policy can't be enforced on this host.
    pub async fn prepare_process(
        &self,
        request: SandboxRequest,
        command: Command,
        limit: Duration,
    ) -> Result<PreparedProcess, LaunchError> {
        let strings = command.exec_strings()?;
        let program = Program {
            candidates: OsString::from_vec(strings.candidates),
            argv: OsString::from_vec(strings.argv),
            env: OsString::from_vec(strings.env),
            cwd: command.cwd,
            passed: i32::try_from(command.passed.len()).unwrap_or(i32::MAX),
        };
        let prepared = self.prepare_within(limit, request, None, program, command.limits);
        let mut prepared = prepared.await?;
        prepared.command.stdio = command.stdio;
        prepared.command.passed.extend(command.passed);
        prepared.program = command.argv.into_iter().next().unwrap_or_default();
        Ok(prepared)
    }

    /// Plans and prepares a sandboxed helper that serves requests, within `limit`.
    ///
    /// # Errors
    /// If the policy can't be enforced on this host.
    pub async fn prepare_helper(
        &self,
        request: SandboxRequest,
        access: WorkerAccess,
        limit: Duration,
    ) -> Result<PreparedHelper, LaunchError> {
        let none = ResourceLimits::default();
        let prepared = self.prepare_within(limit, request, Some(access), Program::none(), none);
        prepared.await.map(PreparedHelper)
    }

    /// Waits for the client's turn, then plans and prepares on a blocking thread.
    async fn prepare_within(
        &self,
        limit: Duration,
        request: SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
        limits: ResourceLimits,
    ) -> Result<PreparedProcess, LaunchError> {
        let (sandbox, client) = (self.clone(), request.client);
        let prepare = move || sandbox.prepare_request(&request, access, program, limits);
        let prepared = self.shared.preparations.run(client, limit, prepare);
        let (prepared, warnings) = prepared.await??;
        for warning in warnings {
            tracing::warn!("sandbox: {warning}");
        }
        Ok(prepared)
    }

    fn prepare_request(
        &self,
        request: &SandboxRequest,
        access: Option<WorkerAccess>,
        program: Program,
        limits: ResourceLimits,
    ) -> Result<(PreparedProcess, Vec<Warning>), LaunchError> {
        // First, because a missing prerequisite explains all other errors.
        let mut support = self.preflight().map_err(PrepareError::from)?;
        // A file worker connects to nothing.
        support.unix_sockets &= access.is_none();
        // Before planning, which would report a missing directory as a missing grant.
        check_directory(&program.cwd)?;
        let tmpdir = request.tmpdir.as_deref().filter(|dir| !dir.is_empty());
        let context = ProcessDirectories {
            cwd: &program.cwd,
            tmpdir: tmpdir.map(Path::new),
        };
        let mut plan = self.plan_request(request, &context)?;
        if access == Some(WorkerAccess::Read) {
            plan = plan.read_only();
        }
        let mut prepared = self.prepare_with(&support, &plan, program, limits)?;
        if access.is_some() {
            // Readable paths with a placeholder, which the helper sees as an empty directory, have to count
            // as missing. After preparation, which creates placeholders.
            let readable = plan.rules.iter().filter(|rule| rule.access == Access::Read);
            let masked = readable.filter(|rule| is_placeholder(&rule.path));
            prepared.absent.extend(masked.map(|rule| rule.path.clone()));
        }
        Ok((prepared, plan.warnings))
    }

    /// Prepares a sandboxed process. Blocks on the file system.
    ///
    /// # Errors
    /// If any part of the plan can't be enforced. Nothing is left on the host then.
    pub fn prepare(&self, plan: &Plan, program: Program) -> Result<PreparedProcess, PrepareError> {
        let limits = ResourceLimits::default();
        self.prepare_with(&self.preflight()?, plan, program, limits)
    }

    /// Prepares a sandboxed process by given means.
    fn prepare_with(
        &self,
        support: &HostSupport,
        plan: &Plan,
        program: Program,
        limits: ResourceLimits,
    ) -> Result<PreparedProcess, PrepareError> {
        // Before the process can use what is granted.
        self.shared.granted.record(plan, SystemTime::now())?;
        let layout = match self.shared.level {
            Level::Namespaces => {
                plan_check::check_namespaces(plan)?;
                let placeholders = self.shared.placeholders.paths();
                mounts::lay_out(plan, &LocalHostPaths, &placeholders)
            }
            Level::Landlock => {
                plan_check::check_landlock(plan)?;
                Layout::default()
            }
        };
        self.prepare_layout(support, plan, layout, program, limits)
    }

    /// Prepares a sandboxed process with given mounts.
    pub(super) fn prepare_layout(
        &self,
        support: &HostSupport,
        plan: &Plan,
        layout: Layout,
        program: Program,
        mut limits: ResourceLimits,
    ) -> Result<PreparedProcess, PrepareError> {
        let Shared { command, level, .. } = &*self.shared;
        let level = *level;
        let Layout { mounts, absent } = layout;
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
        let libraries = match (level, support.mounter) {
            (Level::Namespaces, Mounter::Bubblewrap) => {
                libraries::if_hidden(&self.shared.libraries, plan)?
            }
            _ => Vec::new(),
        };
        let library_count = i32::try_from(libraries.len()).unwrap_or(i32::MAX);
        let grants = plan.rules.iter().filter(|rule| rule.access != Access::Deny);
        let grants = grants.map(|rule| Grant {
            path: rule.path.clone(),
            access: rule.access,
            // With namespaces the mount check compares identities.
            identity: rule.identity.filter(|_| level == Level::Landlock),
        });
        let config = HelperConfig {
            network: plan.network,
            listen: plan.listen.clone(),
            level,
            supervised: support.unix_sockets,
            rlimits: Rlimits::new(&limits, command.open_files),
            stdin: (helper::STDIN_FD + library_count).saturating_add(program.passed),
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
                passed.extend(libraries);
                // The program may have as many processes as without a sandbox.
                limits.processes = limits
                    .processes
                    .map(|count| count.saturating_add(BWRAP_PROCESSES));
                let argv = command.bubblewrap_argv(library_count);
                (&support.bubblewrap, argv, Some(stderr_pipe()?))
            }
            Level::Landlock => (&command.program, command.argv(), None),
        };
        let arg0 = std::mem::replace(&mut argv[0], wrapper.clone().into_os_string());
        // Last, so that nothing is left on the host if another step fails.
        let mut placeholders = self.shared.placeholders.acquire(&absent)?;
        let held = placeholders.carry_locks()?.map(Arc::new);
        let (stderr, wrapper_stderr) = stderr.unzip();
        let own = wrapper_stderr.map(Arc::new);
        let denied = plan.rules.iter().filter(|rule| rule.access == Access::Deny);
        Ok(PreparedProcess {
            command: Command {
                argv,
                arg0: Some(arg0),
                cwd: "/".into(),
                env: HelperCommand::environment(),
                stdio: Stdio::Pipes { stdin: false },
                limits,
                passed: passed.into_iter().map(Arc::new).collect(),
                wrapper: Some(Wrapper {
                    own: own.map(|stderr| WrapperStdio { held, stderr }),
                }),
            },
            resources: HostResources {
                placeholders,
                level,
                init: None,
                supervisor: None,
                listeners: Vec::new(),
            },
            listen: plan.listen.len(),
            denied: denied.map(|rule| rule.path.clone()).collect(),
            absent,
            program: OsString::new(),
            cwd: config.program.cwd,
            stderr,
            channel,
        })
    }
}

/// Checks that the working directory exists. The helper finds out whether it can be entered.
fn check_directory(directory: &Path) -> Result<(), SpawnError> {
    let errno = match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => libc::ENOTDIR,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    Err(SpawnError::not_entered(directory, errno))
}

fn nul_terminated(arguments: &[OsString]) -> Vec<u8> {
    let bytes = arguments.iter().map(|argument| argument.as_encoded_bytes());
    let terminated = bytes.flat_map(|argument| [argument, b"\0"]);
    terminated.flatten().copied().collect()
}
