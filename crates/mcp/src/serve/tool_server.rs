//! The state that all tool calls share.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_client::{
    Error, Executor, FileError, Files, NetworkPolicyParams, PathUri, Sandbox, Start,
};
use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{ProcessRegistry, ToolError, ToolLimits, ToolProcess, file_locks::FileLocks};
use crate::ExecutorProvider;

/// Length limit of a command in a list, in characters.
const SUMMARY_CHARS: usize = 200;

/// The configuration of a tool server.
#[derive(Clone, Debug, Default)]
pub struct ToolServerConfig {
    /// The default working directory; if `None`, the default working directory of the executor.
    pub cwd: Option<String>,
    /// Environment variables for every command, in addition to the executor's environment.
    pub env: BTreeMap<String, String>,
    /// The name of the remote executor, for the instructions to the model.
    pub name: Option<String>,
    /// The sandbox of commands and file operations.
    pub tool_sandbox: Option<ToolSandbox>,
    /// Limits and timeouts.
    pub limits: ToolLimits,
}

/// The sandbox of all commands and file operations.
#[derive(Clone, Debug)]
pub struct ToolSandbox {
    /// The name of the sandbox profile.
    pub profile: String,
    /// The sandbox policy, whose working directory is replaced by the default working directory.
    pub sandbox: Sandbox,
    /// The network policy of commands, instead of the network of the sandbox.
    pub network: Option<NetworkPolicyParams>,
}

/// An MCP server with tools that run commands and use files on an executor.
pub struct ToolServer {
    provider: Arc<dyn ExecutorProvider>,
    config: ToolServerConfig,
    /// The executor that was used last.
    executor: RwLock<Arc<ExecutorInfo>>,
    /// The default working directory of a sandboxed tool server. Its files are writable, so the
    /// directory stays the same if the executor reports another one after a reconnect.
    workspace: Option<PathBuf>,
    pub(super) processes: ProcessRegistry,
    pub(super) file_locks: FileLocks,
    pub(super) call_permits: Semaphore,
    /// Cancelled when the session ends.
    pub(super) session_ended: CancellationToken,
}

impl ToolServer {
    /// Connects to the executor and returns its tools.
    ///
    /// Fails with [`Error::NoDirectory`] if a sandboxed server has no known working
    /// directory: a guess could make files accessible that should not be.
    pub async fn new(
        provider: Arc<dyn ExecutorProvider>,
        config: ToolServerConfig,
    ) -> Result<Self, Error> {
        let executor = ExecutorInfo::query(provider.executor().await?).await?;
        let workspace = if config.tool_sandbox.is_some() {
            let base = executor.known_base(config.cwd.as_deref());
            Some(normalized(&base.ok_or(Error::NoDirectory)?))
        } else {
            None
        };
        let mut id_prefix = uuid::Uuid::new_v4().simple().to_string();
        id_prefix.truncate(4);
        Ok(ToolServer {
            provider,
            executor: RwLock::new(Arc::new(executor)),
            workspace,
            processes: ProcessRegistry::new(id_prefix, &config.limits),
            file_locks: FileLocks::default(),
            call_permits: Semaphore::new(config.limits.concurrent_calls),
            session_ended: CancellationToken::new(),
            config,
        })
    }

    /// Checks early whether the executor can enforce the sandbox. Without it, sandboxed
    /// operations fail anyway.
    pub async fn check_confinement(&self) -> Result<(), FileError> {
        if self.config.tool_sandbox.is_some() {
            let executor = self.last_executor();
            let path = self.path(&executor, None);
            self.files(&executor).metadata(path).await?;
        }
        Ok(())
    }

    /// Ends the session. Running processes are killed.
    pub async fn close(&self) {
        self.session_ended.cancel();
        self.processes.close().await;
    }

    pub(super) fn limits(&self) -> &ToolLimits {
        &self.config.limits
    }

    /// Returns the files of the current executor, and a path resolved against the default
    /// working directory.
    pub(super) async fn locate(&self, path: Option<&str>) -> Result<(Files, PathBuf), ToolError> {
        let executor = self.executor().await?;
        Ok((self.files(&executor), self.path(&executor, path)))
    }

    /// Returns the current executor, after a reconnect if necessary.
    async fn executor(&self) -> Result<Arc<ExecutorInfo>, ToolError> {
        let executor = self.provider.executor().await?;
        let known = self.last_executor();
        if Arc::ptr_eq(&known.executor, &executor) {
            return Ok(known);
        }
        let info = Arc::new(ExecutorInfo::query(executor).await?);
        *self.executor.write() = Arc::clone(&info);
        Ok(info)
    }

    fn last_executor(&self) -> Arc<ExecutorInfo> {
        Arc::clone(&self.executor.read())
    }

    /// Resolves a path against the default working directory. The result has no `.` and
    /// `..` components, like the executor's paths, with which it is compared.
    fn path(&self, executor: &ExecutorInfo, path: Option<&str>) -> PathBuf {
        let base = match &self.workspace {
            Some(workspace) => workspace.clone(),
            None => executor.base(self.config.cwd.as_deref()),
        };
        match path {
            Some(path) => normalized(&base.join(executor.expand_home(path))),
            None => normalized(&base),
        }
    }

    /// Returns the executor's files, sandboxed if the server is.
    fn files(&self, executor: &ExecutorInfo) -> Files {
        let files = executor.executor.files();
        match self.sandbox() {
            Some(sandbox) => files.sandboxed(sandbox.into()),
            None => files,
        }
    }

    fn sandbox(&self) -> Option<Sandbox> {
        let tool_sandbox = self.config.tool_sandbox.as_ref()?;
        let sandbox = tool_sandbox.sandbox.clone();
        Some(sandbox.moved_to(self.workspace.as_ref()?))
    }

    /// Starts a command and collects its output.
    pub(super) async fn start(&self, request: StartRequest) -> Result<Arc<ToolProcess>, ToolError> {
        let executor = self.executor().await?;
        let command = request.summary();
        let mut start = Start::new(request.argv(&executor.shell)?)
            .cwd(self.path(&executor, request.cwd.as_deref()))
            .inherit_env()
            .envs(self.config.env.clone())
            .envs(request.env.unwrap_or_default());
        if let Some(sandbox) = self.sandbox() {
            start = start.sandbox(sandbox);
        }
        let tool_sandbox = self.config.tool_sandbox.as_ref();
        if let Some(network) = tool_sandbox.and_then(|sandbox| sandbox.network.clone()) {
            start = start.network(network);
        }
        if let Some((rows, cols)) = request.tty {
            start = start.size(rows, cols);
        } else if request.stdin {
            start = start.stdin();
        }
        let (executor, tty) = (&*executor.executor, request.tty.is_some());
        let starting = self
            .processes
            .start(executor, start, command, tty, self.limits());
        starting.await
    }

    /// Returns the instructions for the model.
    pub(super) fn instructions(&self) -> String {
        let executor = self.last_executor();
        let machine = match &self.config.name {
            Some(name) => format!("the machine behind {name}"),
            None => "this machine".to_owned(),
        };
        let sandboxed = match &self.config.tool_sandbox {
            Some(ToolSandbox { profile, .. }) => format!(
                " Commands and file operations run in the sandbox profile {profile}: operations \
                 that it doesn't allow fail with a permission error, and no other way will work."
            ),
            None => String::new(),
        };
        format!(
            "Runs commands and uses files on {machine} ({}). The default working directory is {}; \
             relative paths start there. Command lines are executed by {}. Use run_command for \
             commands that exit by themselves, and start_process with read_output for servers and \
             interactive programs. Output that exceeds the limit of a response is cut in the \
             middle, and the response says how to read the rest. A command that fails is not a \
             tool error: check exit_code. All processes are terminated when this session \
             ends.{sandboxed}",
            executor.os,
            self.path(&executor, None).display(),
            executor.shell,
        )
    }
}

/// The arguments of a tool that starts a command: a shell command line, or a program with its
/// arguments.
#[derive(Default)]
pub(super) struct StartRequest {
    pub(super) command: Option<String>,
    pub(super) argv: Option<Vec<String>>,
    pub(super) cwd: Option<String>,
    pub(super) env: Option<BTreeMap<String, String>>,
    /// The rows and columns of its terminal, if it has one.
    pub(super) tty: Option<(u16, u16)>,
    pub(super) stdin: bool,
}

impl StartRequest {
    /// Returns the program and its arguments. `shell` executes a command line.
    fn argv(&self, shell: &str) -> Result<Vec<String>, ToolError> {
        match (&self.command, &self.argv) {
            (Some(line), None) => Ok(vec![shell.to_owned(), "-c".to_owned(), line.clone()]),
            (None, Some(argv)) if argv.is_empty() => Err(ToolError::EmptyArgv),
            (None, Some(argv)) => Ok(argv.clone()),
            (None, None) => Err(ToolError::NoCommand),
            (Some(_), Some(_)) => Err(ToolError::TwoCommands),
        }
    }

    /// Returns the command on one line, shortened.
    fn summary(&self) -> String {
        let words = self.command.iter().chain(self.argv.iter().flatten());
        let words: Vec<_> = words.flat_map(|word| word.split_whitespace()).collect();
        let line = words.join(" ");
        match line.char_indices().nth(SUMMARY_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// Removes `.` and `..` components.
fn normalized(path: &Path) -> PathBuf {
    PathUri::from_path(path).into_path()
}

/// An executor with the properties that the tools need.
struct ExecutorInfo {
    executor: Arc<dyn Executor>,
    /// The shell that executes command lines.
    shell: String,
    /// The executor's working directory, if it reports one.
    cwd: Option<PathBuf>,
    home: Option<PathBuf>,
    os: String,
}

impl ExecutorInfo {
    async fn query(executor: Arc<dyn Executor>) -> Result<Self, Error> {
        let host = executor.environment().await?;
        let os = host.platform_os;
        Ok(ExecutorInfo {
            executor,
            shell: host.shell.path,
            cwd: host.cwd.map(|cwd| cwd.into_path()),
            home: host.user_home_dir.map(|home| home.into_path()),
            os: os.unwrap_or_else(|| "unknown operating system".to_owned()),
        })
    }

    /// Returns the default working directory, based on `/` if the executor reports none.
    fn base(&self, configured: Option<&str>) -> PathBuf {
        self.known_base(configured)
            .unwrap_or_else(|| Path::new("/").join(configured.unwrap_or_default()))
    }

    /// Returns the default working directory, or `None` if it would be a guess.
    fn known_base(&self, configured: Option<&str>) -> Option<PathBuf> {
        let configured = configured.map(|path| self.expand_home(path));
        match (&self.cwd, configured) {
            (Some(cwd), Some(configured)) => Some(cwd.join(configured)),
            (cwd, None) => cwd.clone(),
            (None, Some(configured)) => configured.is_absolute().then_some(configured),
        }
    }

    /// Expands a leading `~`, which models write although no shell sees the path.
    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}

#[cfg(test)]
#[path = "tool_server_tests.rs"]
mod tests;
