//! A confined process and its free twin.
#![expect(unsafe_code, reason = "a descriptor is put at a number of our choice")]

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use outpost_sandbox::planning::{self, Bounds, Child};
use outpost_sandbox::policy::{Entry, FileSystem, Place, Policy, Restricted};
use outpost_sandbox::{
    Access, Confined, Hold, Identity, Level, Network, Plan, PrepareError, Presence, Program, Rule,
    Sandbox, StageCommand, Why,
};

/// A folder of the host with a part that the plan lets one write.
pub(crate) struct Cell {
    folder: tempfile::TempDir,
    pub(crate) plan: Plan,
    sandbox: Sandbox,
}

/// How an attempt went.
pub(crate) struct Outcome(Output);

impl Cell {
    /// Everything can be read, the workspace can be written, and there is no network.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).expect("a workspace");
        let plan = Plan {
            rules: vec![
                rule(Access::Read, Path::new("/")),
                rule(Access::Write, &workspace),
            ],
            links: Vec::new(),
            network: Network::Restricted,
            cwd: workspace,
            warnings: Vec::new(),
        };
        Self {
            folder,
            plan,
            sandbox: sandbox(Level::default()),
        }
    }

    /// A path inside the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// A path beside the workspace.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file with something in it.
    pub(crate) fn file(&self, path: PathBuf) -> PathBuf {
        std::fs::write(&path, "original").expect("it is written");
        path
    }

    /// With one more rule.
    pub(crate) fn and(mut self, access: Access, path: &Path) -> Self {
        self.plan.rules.push(rule(access, path));
        self
    }

    /// With the plan that comes of these instead, as things are now.
    pub(crate) fn follow(&mut self, entries: &[(Access, &Path)]) {
        let entries = entries
            .iter()
            .map(|(access, path)| Entry::new(Place::Path(path.to_path_buf()), *access));
        self.follow_entries(entries);
    }

    /// The same of entries of any kind.
    pub(crate) fn follow_entries(&mut self, entries: impl IntoIterator<Item = Entry>) {
        let policy = Policy {
            file_system: FileSystem::Restricted(Restricted {
                entries: entries.into_iter().collect(),
                glob_scan_max_depth: None,
            }),
            network: Network::Restricted,
            cwd: self.plan.cwd.clone(),
            workspace_roots: vec![self.plan.cwd.clone()],
        };
        let child = Child {
            cwd: &self.plan.cwd,
            tmpdir: None,
        };
        let plan = planning::plan(&policy, &child, &planning::Host, &Bounds::default());
        self.plan = plan.expect("there is a plan");
    }

    /// The same plan without namespaces.
    pub(crate) fn alone(self) -> Self {
        let sandbox = sandbox(Level::Landlock);
        Self { sandbox, ..self }
    }

    /// A program that does nothing.
    pub(crate) fn program(&self) -> Program {
        Program {
            candidates: b"/bin/true\0".to_vec(),
            argv: b"true\0".to_vec(),
            env: Vec::new(),
            cwd: self.plan.cwd.clone(),
        }
    }

    /// Whether an attempt could be prepared and has worked.
    pub(crate) fn ran(&self, words: &[&str]) -> bool {
        match self.sandbox.confine(&self.plan, self.program()) {
            Ok(_) => self.confined(words).0.status.success(),
            Err(_) => false,
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// One attempt without the sandbox.
    pub(crate) fn free(&self, words: &[&str]) -> Outcome {
        let output = Command::new(program()).args(words).output();
        Outcome(output.expect("it runs"))
    }

    /// The same within.
    pub(crate) fn confined(&self, words: &[&str]) -> Outcome {
        let program = program();
        let argv: Vec<_> = [program.as_os_str()]
            .into_iter()
            .chain(words.iter().map(AsRef::as_ref))
            .collect();
        self.run(&argv)
    }

    /// A script within.
    pub(crate) fn script(&self, script: &str) -> Outcome {
        self.run(&["/bin/sh", "-c", script].map(AsRef::as_ref))
    }

    /// The same while things change, where it may not even come to be prepared.
    pub(crate) fn try_script(&self, script: &str) {
        let argv = ["/bin/sh", "-c", script].map(AsRef::as_ref);
        if let Ok((mut command, _hold)) = self.prepared(&argv) {
            command.output().expect("it runs");
        }
    }

    fn run(&self, argv: &[&std::ffi::OsStr]) -> Outcome {
        let (mut command, _hold) = self.command(argv);
        let output = command.output();
        Outcome(output.expect("it runs"))
    }

    /// What to start for a confined program, and what to keep meanwhile.
    pub(crate) fn command(&self, argv: &[&std::ffi::OsStr]) -> (Command, Hold) {
        self.prepared(argv).expect("it can be confined")
    }

    fn prepared(&self, argv: &[&std::ffi::OsStr]) -> Result<(Command, Hold), PrepareError> {
        let run = |strings: &[&std::ffi::OsStr]| {
            let terminated = strings.iter().map(|one| [one.as_bytes(), b"\0"].concat());
            terminated.collect::<Vec<_>>().concat()
        };
        let confined = self.sandbox.confine(
            &self.plan,
            Program {
                candidates: run(&argv[..1]),
                argv: run(argv),
                env: run(&["PATH=/usr/bin:/bin".as_ref()]),
                cwd: self.plan.cwd.clone(),
            },
        );
        let Confined {
            program,
            argv,
            env,
            passed,
            own,
            hold,
            ..
        } = confined?;
        let mut command = Command::new(program);
        command.arg0(&argv[0]).args(&argv[1..]);
        command.env_clear().envs(env).stdin(Stdio::null());
        let is_carried = own.is_some();
        // Out of the way of the numbers they are to have.
        let passed = passed
            .iter()
            .map(|one| rustix::io::fcntl_dupfd_cloexec(one, 10));
        let passed: Vec<_> = passed.collect::<Result<_, _>>().expect("few are open");
        let place = move || {
            let given = passed.iter().map(AsRawFd::as_raw_fd);
            // Who carries it has them as well here, where that is in nobody's way.
            let streams = (0..3).filter(|_| is_carried);
            for (number, one) in (3..).zip(given.chain(streams)) {
                // SAFETY: no pointers; the number is the stage's, and nobody's before.
                if unsafe { libc::dup2(one, number) } == -1 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: it makes system calls, and nothing is allocated.
        unsafe { command.pre_exec(place) };
        Ok((command, hold))
    }
}

impl Outcome {
    /// It worked.
    pub(crate) fn succeeds(&self) {
        assert!(self.0.status.success(), "{:?}", self.0);
    }

    /// It ran and was refused by the system, in these words. An attempt that can't be made at all
    /// is none.
    pub(crate) fn fails(&self, words: &str) {
        assert_eq!(self.0.status.code(), Some(1), "{:?}", self.0);
        let said = String::from_utf8_lossy(&self.0.stderr);
        assert!(
            said.contains(words) && said.contains("(os error "),
            "{said}"
        );
    }

    /// A program that isn't ours ended with an error, in these words.
    pub(crate) fn complains(&self, words: &str) {
        assert_eq!(self.0.status.code(), Some(1), "{:?}", self.0);
        let said = String::from_utf8_lossy(&self.0.stderr);
        assert!(said.contains(words), "{said}");
    }

    /// The code it ended with, as the wire tells it.
    pub(crate) fn code(&self) -> i32 {
        let signal = || self.0.status.signal().map(|signal| 128 + signal);
        self.0.status.code().or_else(signal).unwrap_or(-1)
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }
}

pub(crate) fn rule(access: Access, path: &Path) -> Rule {
    let found = path.symlink_metadata();
    let identity = found.as_ref().ok().map(|found| Identity {
        device: found.dev(),
        inode: found.ino(),
    });
    let presence = match found {
        Ok(metadata) if metadata.is_dir() => Presence::Directory,
        Ok(_) => Presence::File,
        Err(_) => Presence::Absent,
    };
    Rule {
        path: path.to_owned(),
        access,
        presence,
        identity,
        why: Why::Entry,
    }
}

/// Nextest knows where it is when the tests are run from somewhere else than where they were built.
fn program() -> PathBuf {
    let built = || OsString::from(env!("CARGO_BIN_EXE_escape"));
    let path = PathBuf::from(std::env::var_os("NEXTEST_BIN_EXE_escape").unwrap_or_else(built));
    path.canonicalize().expect("it was built")
}

/// One that mounts as this suite is about.
fn sandbox(level: Level) -> Sandbox {
    Sandbox::mounted_by(Some(crate::MOUNTER), stage(), level)
}

fn stage() -> StageCommand {
    StageCommand {
        program: program(),
        args: vec!["confine".to_owned()],
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// As an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// Gives a directory the time by which the sandbox knows its own.
pub(crate) fn mark(directory: &Path) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(0x4f55_5450);
    let opened = std::fs::File::open(directory).expect("it opens");
    opened.set_modified(time).expect("it is marked");
}
