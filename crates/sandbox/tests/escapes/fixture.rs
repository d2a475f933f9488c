//! Runs escape attempts inside and outside of a sandbox.
#![expect(unsafe_code, reason = "descriptors are passed at fixed numbers")]

use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use outpost_process::{Exit, Spawner, SpawnerOptions, TreeChoice};
use outpost_sandbox::planning::{OwnPath, PlanError, ProcessDirectories};
use outpost_sandbox::policy::{Entry, FileSystem, Policy};
use outpost_sandbox::{
    Access, HelperCommand, HostResources, Identity, LaunchError, Level, Network, Origin, PathState,
    Plan, PrepareError, PreparedProcess, Program, Rule, Sandbox,
};

use crate::landlock;

/// A directory on the host with a writable workspace, and a sandbox.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    pub(crate) plan: Plan,
    pub(crate) sandbox: Sandbox,
}

/// Far longer than any start takes.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of an attempt.
pub(crate) struct Outcome(Output);

impl Fixture {
    /// Everything is readable, the workspace is writable, and there is no network.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("create directory");
        let workspace = directory.path().join("workspace");
        std::fs::create_dir(&workspace).expect("create workspace");
        let plan = Plan {
            rules: vec![
                rule(Access::Read, Path::new("/")),
                rule(Access::Write, &workspace),
            ],
            links: Vec::new(),
            network: Network::Restricted,
            listen: Vec::new(),
            cwd: workspace,
            warnings: Vec::new(),
        };
        Self {
            directory,
            plan,
            sandbox: sandbox(Level::default()),
        }
    }

    /// Returns a path in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.directory.path().join("workspace").join(name)
    }

    /// Returns a path beside the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Creates a file that contains "original".
    pub(crate) fn file(&self, path: PathBuf) -> PathBuf {
        std::fs::write(&path, "original").expect("write file");
        path
    }

    /// Adds a rule to the plan.
    pub(crate) fn and(mut self, access: Access, path: &Path) -> Self {
        self.plan.rules.push(rule(access, path));
        self
    }

    /// Replaces the plan by one for these paths.
    pub(crate) fn plan_paths(&mut self, entries: &[(Access, &Path)]) {
        let entries = entries
            .iter()
            .map(|(access, path)| Entry::path(path.to_path_buf(), *access));
        self.plan_entries(entries);
    }

    /// Replaces the plan by one for these entries.
    pub(crate) fn plan_entries(&mut self, entries: impl IntoIterator<Item = Entry>) {
        let files = FileSystem::restricted(entries.into_iter().collect());
        self.plan_files(files).expect("plan");
    }

    /// Replaces the plan by one for these files, if there is one.
    pub(crate) fn plan_files(&mut self, files: FileSystem) -> Result<(), PlanError> {
        let policy = Policy {
            file_system: files,
            network: Network::Restricted,
            cwd: self.plan.cwd.clone(),
            workspace_roots: vec![self.plan.cwd.clone()],
        };
        let context = ProcessDirectories {
            cwd: &self.plan.cwd,
            tmpdir: None,
        };
        self.plan = self.sandbox.plan(&policy, &context)?;
        Ok(())
    }

    /// Protects these paths of the server.
    pub(crate) fn with_own_paths(self, own_paths: Vec<OwnPath>) -> Self {
        let helper = HelperCommand {
            own_paths,
            ..helper_command()
        };
        let sandbox = sandbox_with(Level::default(), helper);
        Self { sandbox, ..self }
    }

    /// Uses a copy of the helper in the workspace, `bin/escape`.
    pub(crate) fn with_program_inside(self) -> Self {
        let copy = self.inside("bin/escape");
        std::fs::create_dir(self.inside("bin")).expect("create directory");
        std::fs::copy(program(), &copy).expect("copy");
        let mut helper = helper_command();
        helper.program = copy;
        let sandbox = sandbox_with(Level::default(), helper);
        Self { sandbox, ..self }
    }

    /// Uses another level.
    pub(crate) fn at(self, level: Level) -> Self {
        let sandbox = sandbox(level);
        Self { sandbox, ..self }
    }

    /// Returns a program that does nothing.
    pub(crate) fn program(&self) -> Program {
        Program {
            candidates: "/bin/true\0".into(),
            argv: "true\0".into(),
            cwd: self.plan.cwd.clone(),
            ..Program::default()
        }
    }

    /// Returns whether an attempt could be prepared and succeeded.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> bool {
        match self.sandbox.prepare(&self.plan, self.program()) {
            Ok(_) => self.sandboxed(arguments).0.status.success(),
            Err(_) => false,
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Runs an attempt without the sandbox.
    pub(crate) fn unsandboxed(&self, arguments: &[&str]) -> Outcome {
        let output = Command::new(program()).args(arguments).output();
        Outcome(output.expect("run"))
    }

    /// Runs an attempt inside the sandbox.
    pub(crate) fn sandboxed(&self, arguments: &[&str]) -> Outcome {
        let arguments = arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>();
        self.run(&[&[program().as_os_str()], &*arguments].concat())
    }

    /// Runs an attempt inside the sandbox as a server does, which makes its connections.
    pub(crate) fn supervised(&self, arguments: &[&str]) -> Outcome {
        self.run_supervised(&[&[text(&program())], arguments].concat())
    }

    /// Runs a program inside the sandbox as a server does.
    pub(crate) fn run_supervised(&self, argv: &[&str]) -> Outcome {
        self.run_with_listeners(argv, |listeners| assert!(listeners.is_empty()))
    }

    /// Runs a program inside the sandbox as a server does, and passes on the listeners in its network.
    pub(crate) fn run_with_listeners(
        &self,
        argv: &[&str],
        serve: impl FnOnce(Vec<TcpListener>),
    ) -> Outcome {
        let argv: Vec<_> = argv.iter().map(AsRef::as_ref).collect();
        let prepared = self.prepare_process(&argv).expect("prepare");
        let options = SpawnerOptions {
            trees: TreeChoice::Group,
            ..SpawnerOptions::default()
        };
        let spawner = Spawner::new(options).expect("spawner");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("runtime").block_on(async {
            let never = std::future::pending::<LaunchError>();
            let started = prepared.start(&spawner, START_TIMEOUT, never).await;
            let (mut child, mut resources) = started.expect("start");
            serve(resources.take_listeners());
            let status = match child.exit.wait().await {
                Exit::Code(code) => code << 8,
                Exit::Signal(signal) => signal,
                Exit::Lost => panic!("exit status is lost"),
            };
            let mut outputs = child.outputs.iter_mut().map(|one| one.drain().concat());
            let outcome = Outcome(Output {
                status: ExitStatus::from_raw(status),
                stdout: outputs.next().unwrap_or_default(),
                stderr: outputs.next().unwrap_or_default(),
            });
            drop(outputs);
            child.exit.reap();
            drop(resources.release().await);
            outcome
        })
    }

    /// Returns whether this host can have unix sockets in a sandbox without a network. Kernels before
    /// 5.19 can't; docs/sandbox.md says so.
    pub(crate) fn has_unix_sockets(&self) -> bool {
        let support = self.sandbox.preflight().expect("host is supported");
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        let mut numbers = release
            .split(['.', '-'])
            .map(|part| part.parse().unwrap_or(0));
        let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        assert!(support.unix_sockets || version < (5, 19), "{support:?}");
        support.unix_sockets
    }

    /// Runs a shell script inside the sandbox.
    pub(crate) fn script(&self, script: &str) -> Outcome {
        self.run(&["/bin/sh", "-c", script].map(AsRef::as_ref))
    }

    /// Runs a shell script, if it can be prepared while paths change.
    pub(crate) fn try_script(&self, script: &str) -> Option<Outcome> {
        let argv = ["/bin/sh", "-c", script].map(AsRef::as_ref);
        let (mut command, _resources) = self.prepare(&argv).ok()?;
        Some(Outcome(command.output().expect("run")))
    }

    fn run(&self, argv: &[&OsStr]) -> Outcome {
        let (mut command, _resources) = self.command(argv);
        let output = command.output();
        Outcome(output.expect("run"))
    }

    /// Returns the command for a sandboxed program, and the resources to keep while it runs.
    pub(crate) fn command(&self, argv: &[&OsStr]) -> (Command, HostResources) {
        self.prepare(argv).expect("prepare")
    }

    fn prepare_process(&self, argv: &[&OsStr]) -> Result<PreparedProcess, PrepareError> {
        let nul_terminated = |strings: &[&OsStr]| {
            let terminated = strings.iter().map(|one| [one.as_bytes(), b"\0"].concat());
            OsString::from_vec(terminated.collect::<Vec<_>>().concat())
        };
        self.sandbox.prepare(
            &self.plan,
            Program {
                candidates: nul_terminated(&argv[..1]),
                argv: nul_terminated(argv),
                env: nul_terminated(&["PATH=/usr/bin:/bin".as_ref()]),
                cwd: self.plan.cwd.clone(),
                passed: 0,
            },
        )
    }

    fn prepare(&self, argv: &[&OsStr]) -> Result<(Command, HostResources), PrepareError> {
        let PreparedProcess {
            command: prepared,
            resources,
            ..
        } = self.prepare_process(argv)?;
        let (argv, arg0) = (prepared.argv, prepared.arg0.expect("has a name"));
        let mut command = Command::new(&argv[0]);
        command.arg0(arg0).args(&argv[1..]);
        command.env_clear().envs(prepared.env).stdin(Stdio::null());
        let wrapper = prepared.wrapper.expect("is a wrapper");
        let has_wrapper = wrapper.own.is_some();
        // Moved above the numbers that they are duplicated to.
        let passed = prepared
            .passed
            .iter()
            .map(|one| rustix::io::fcntl_dupfd_cloexec(one, 32));
        let passed: Vec<_> = passed.collect::<Result<_, _>>().expect("duplicate");
        let place_descriptors = move || {
            let passed = passed.iter().map(AsRawFd::as_raw_fd);
            // Bubblewrap keeps its copies of the streams here, which does no harm in a test.
            let streams = (0..3).filter(|_| has_wrapper);
            for (number, one) in (3..).zip(passed.chain(streams)) {
                // SAFETY: no pointers; nothing else in the child uses these numbers.
                if unsafe { libc::dup2(one, number) } == -1 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: the closure makes only system calls and doesn't allocate.
        unsafe { command.pre_exec(place_descriptors) };
        Ok((command, resources))
    }
}

impl Outcome {
    pub(crate) fn assert_success(&self) {
        assert!(self.0.status.success(), "{:?}", self.0);
    }

    /// Asserts that an attempt ran and a system call failed with this message.
    pub(crate) fn assert_fails(&self, message: &str) {
        assert_eq!(self.0.status.code(), Some(1), "{:?}", self.0);
        let stderr = String::from_utf8_lossy(&self.0.stderr);
        assert!(
            stderr.contains(message) && stderr.contains("(os error "),
            "{stderr}"
        );
    }

    /// Asserts that a program other than ours failed with this message.
    pub(crate) fn assert_stderr(&self, message: &str) {
        assert_eq!(self.0.status.code(), Some(1), "{:?}", self.0);
        let stderr = String::from_utf8_lossy(&self.0.stderr);
        assert!(stderr.contains(message), "{stderr}");
    }

    /// Returns the exit code, 128 + signal number for a signal.
    pub(crate) fn code(&self) -> i32 {
        let signal = || self.0.status.signal().map(|signal| 128 + signal);
        self.0.status.code().or_else(signal).unwrap_or(-1)
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }
}

/// Returns a rule for a path as it is now.
pub(crate) fn rule(access: Access, path: &Path) -> Rule {
    let metadata = path.symlink_metadata();
    let identity = metadata.as_ref().ok().map(|metadata| Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    });
    let presence = match metadata {
        Ok(metadata) if metadata.is_dir() => PathState::Directory,
        Ok(_) => PathState::File,
        Err(_) => PathState::Absent,
    };
    Rule {
        path: path.to_owned(),
        access,
        presence,
        identity,
        origin: Origin::Entry,
    }
}

/// Returns the path of the test program. Nextest sets the variable when tests run on another host than the
/// one that built them.
pub(crate) fn program() -> PathBuf {
    let built = || OsString::from(env!("CARGO_BIN_EXE_escape"));
    let path = PathBuf::from(std::env::var_os("NEXTEST_BIN_EXE_escape").unwrap_or_else(built));
    path.canonicalize().expect("canonicalize")
}

fn sandbox(level: Level) -> Sandbox {
    sandbox_with(level, helper_command())
}

pub(crate) fn helper_command() -> HelperCommand {
    HelperCommand {
        program: program(),
        args: vec!["confine".to_owned()],
        ..HelperCommand::default()
    }
}

pub(crate) fn sandbox_with(level: Level, helper: HelperCommand) -> Sandbox {
    landlock::hide_if_absent();
    Sandbox::with_mounter(Some(crate::MOUNTER), helper, level)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
