//! Start requests.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use outpost_netproxy::NetworkPolicies;
use outpost_process::{Command, Stdio};
use outpost_sandbox::{Floor, SandboxRequest, TurnKey};
use outpost_types::{
    ResourceLimits, StartParams,
    sandbox::{FileSystem, Network, Policy},
};

use crate::{
    InvalidNetwork, NetworkRequest, ProcessObserver, ServerEnvironment,
    shell_snapshot::{InvalidSnapshot, SnapshotRequest},
};

/// A process to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The process id chosen by the client.
    pub id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The name that the program sees instead of `argv[0]`.
    pub arg0: Option<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The sandbox policy; `None` to run unsandboxed. A process whose policy cannot be
    /// enforced in full does not start.
    pub sandbox: Option<Policy>,
    /// The minimum sandbox. With it, a process without a policy gets the default policy of the floor.
    pub floor: Option<Arc<Floor>>,
    /// Pipes or a terminal.
    pub stdio: Stdio,
    /// Stored with the process, not interpreted.
    pub metadata: BTreeMap<String, String>,
    /// After this time the tree is killed, and the exit code is 124.
    pub timeout: Option<Duration>,
    /// How long its streams are read after its exit while other processes hold them
    /// open. Then they are closed. `None`: until they end.
    pub drain: Option<Duration>,
    /// The retention, at most the server's; absent for the server's.
    pub retain_bytes: Option<usize>,
    /// The default grace period of a termination.
    pub kill_grace: Duration,
    /// How many processes its peer may have running; `None` for no limit of its own.
    pub max_processes: Option<usize>,
    /// The network of the process, if not the network of its policy. A process whose network cannot be
    /// enforced does not start.
    pub network: Option<NetworkRequest>,
    /// Limits on its resources. A process whose limits cannot be enforced does not start.
    pub limits: ResourceLimits,
    /// Runs its command with the snapshot of its login shell, if there can be one.
    pub snapshot: Option<SnapshotRequest>,
    /// Sees its exit and the decisions of its proxy.
    pub observer: Option<Arc<dyn ProcessObserver>>,
}

/// A start request that can't be fulfilled on any host. The text is part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStart {
    /// The id is empty.
    #[error("processId must not be empty")]
    EmptyId,
    /// The id is too long.
    #[error("processId must be at most {MAX_ID_BYTES} bytes long")]
    LongId,
    /// There is no program.
    #[error("argv must not be empty")]
    NoProgram,
    /// A size without a terminal.
    #[error("size requires tty: true")]
    SizeWithoutTerminal,
    /// A terminal without rows or columns.
    #[error("size rows and cols must be greater than 0")]
    EmptySize,
    /// A snapshot that no executor can have.
    #[error(transparent)]
    Snapshot(#[from] InvalidSnapshot),
    /// The network is invalid.
    #[error(transparent)]
    Network(#[from] InvalidNetwork),
}

/// Memory of a text besides its bytes.
const TEXT_BYTES: usize = 48;

/// The longest id of a process, in bytes.
const MAX_ID_BYTES: usize = 256;

impl Start {
    /// Checks and converts a request, for an executor with this environment and these network policies.
    ///
    /// # Errors
    /// When the request is invalid on every host.
    pub fn from_params(
        params: StartParams,
        environment: &ServerEnvironment,
        policies: &NetworkPolicies,
    ) -> Result<Start, InvalidStart> {
        check(&params)?;
        let snapshot = SnapshotRequest::from_params(&params)?;
        let env = params.env.iter();
        let env = env.map(|(name, value)| (name.clone(), Some(value.clone())));
        let env = environment.for_child(params.env_policy.as_ref(), env.collect());
        let sandbox = params.sandbox.clone();
        let sandbox = sandbox.and_then(|sandbox| sandbox.into_policy(params.cwd.as_path()));
        Ok(Start {
            network: NetworkRequest::from_params(&params, sandbox.is_some(), &env, policies)?,
            sandbox,
            floor: None,
            env,
            id: params.process_id,
            argv: params.argv,
            arg0: params.arg0,
            cwd: params.cwd.into_path(),
            stdio: if params.tty {
                Stdio::Pty {
                    size: params.size.unwrap_or_default(),
                }
            } else {
                Stdio::Pipes {
                    stdin: params.pipe_stdin,
                }
            },
            metadata: params.metadata.unwrap_or_default(),
            timeout: params.timeout_ms.map(Duration::from_millis),
            drain: None,
            retain_bytes: params
                .retain_bytes
                .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            kill_grace: Duration::from_millis(params.kill_grace_ms.unwrap_or(0)),
            max_processes: None,
            limits: params.limits.unwrap_or_default(),
            snapshot,
            observer: None,
        })
    }
}

impl Start {
    /// Whether its network needs a sandbox, even if its files are not to be restricted.
    #[must_use]
    pub fn needs_sandbox(&self) -> bool {
        let network = self.network.as_ref();
        network.is_some_and(|network| network.needs_sandbox)
    }

    /// Adds a sandbox that restricts only the network, if the network needs a sandbox and there is none.
    pub fn sandbox_network(&mut self) {
        if self.needs_sandbox() && !self.is_sandboxed() {
            self.sandbox = Some(Policy {
                file_system: FileSystem::Unrestricted,
                network: Network::Restricted,
                cwd: self.cwd.clone(),
                workspace_roots: vec![self.cwd.clone()],
            });
        }
    }

    /// The sandbox of the child, if it is to be sandboxed.
    pub(crate) fn sandbox_request(&self, client: TurnKey) -> Option<SandboxRequest> {
        let own_tmpdir = || {
            let mut variables = self.env.iter().rev();
            let found = variables.find(|(name, _)| name == "TMPDIR");
            found.map(|(_, value)| value.clone())
        };
        let tmpdir = own_tmpdir();
        sandbox_request(self.sandbox.clone(), tmpdir, self.floor.clone(), client)
    }

    /// The policy of the child, if it is to be sandboxed.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        let default = self.floor.as_ref().map(|floor| &floor.default);
        self.sandbox.as_ref().or(default)
    }

    /// Whether the child is to be sandboxed.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.sandbox.is_some() || self.floor.is_some()
    }

    /// The command of the child, without its sandbox.
    pub(crate) fn command(&self) -> Command {
        Command {
            argv: self.argv.iter().map(Into::into).collect(),
            arg0: self.arg0.as_ref().map(Into::into),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            stdio: self.stdio,
            limits: self.limits,
            passed: Vec::new(),
            wrapper: None,
        }
    }
}

/// Returns the sandbox for a policy and a minimum sandbox, either of which may be absent.
pub(crate) fn sandbox_request(
    policy: Option<Policy>,
    tmpdir: Option<OsString>,
    floor: Option<Arc<Floor>>,
    client: TurnKey,
) -> Option<SandboxRequest> {
    let (policy, tmpdir) = match (policy, &floor) {
        (Some(policy), _) => (policy, tmpdir),
        (None, Some(floor)) => (floor.default.clone(), floor.tmpdir.clone()),
        (None, None) => return None,
    };
    Some(SandboxRequest {
        policy,
        tmpdir,
        listen: Vec::new(),
        client,
        floor,
    })
}

fn check(params: &StartParams) -> Result<(), InvalidStart> {
    if params.process_id.is_empty() {
        return Err(InvalidStart::EmptyId);
    }
    if params.process_id.len() > MAX_ID_BYTES {
        return Err(InvalidStart::LongId);
    }
    if params.argv.is_empty() {
        return Err(InvalidStart::NoProgram);
    }
    if let Some(size) = params.size {
        if !params.tty {
            return Err(InvalidStart::SizeWithoutTerminal);
        }
        if size.rows == 0 || size.cols == 0 {
            return Err(InvalidStart::EmptySize);
        }
    }
    Ok(())
}

/// The description of a process, retained as long as the process.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// The process id chosen by the client.
    pub id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Whether it runs on a terminal.
    pub tty: bool,
    /// Whether its standard input can be written.
    pub takes_input: bool,
    /// The client's metadata.
    pub metadata: BTreeMap<String, String>,
    /// The time of the request.
    pub started_at: SystemTime,
    /// The position among all starts of its session. Timestamps do not give an order:
    /// several starts can share a tick, and clocks are set back.
    pub order: u64,
    /// The default grace period of a termination.
    pub(crate) kill_grace: Duration,
}

impl ProcessInfo {
    /// The approximate memory that the client's texts use.
    pub(crate) fn bytes(&self) -> usize {
        let argv = self.argv.iter().map(|text| text.len() + TEXT_BYTES);
        let metadata = self.metadata.iter();
        let metadata = metadata.map(|(name, value)| name.len() + value.len() + 2 * TEXT_BYTES);
        argv.chain(metadata).sum()
    }

    pub(crate) fn new(start: &Start, order: u64) -> Self {
        ProcessInfo {
            id: start.id.clone(),
            argv: start.argv.clone(),
            cwd: start.cwd.clone(),
            tty: matches!(start.stdio, Stdio::Pty { .. }),
            takes_input: start.stdio != Stdio::Pipes { stdin: false },
            metadata: start.metadata.clone(),
            started_at: SystemTime::now(),
            order,
            kill_grace: start.kill_grace,
        }
    }
}
