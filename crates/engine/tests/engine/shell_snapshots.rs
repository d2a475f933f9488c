//! Commands with the snapshots of their login shells.

mod captures;
mod failures;
mod keys;
mod restored;
mod shells;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use outpost_engine::{
    Delivery, Engine, EnvPolicy, Inherit, Limits, Process, Seq, ServerEnvironment, Session, Start,
    StartError, netproxy::NetworkPolicies,
};
use outpost_types::{PathUri, Shell, ShellSnapshot, StartParams};
use tokio::time::timeout;

use crate::owner::{self, TIMEOUT, engine, open};

/// A home directory with a profile that records each of its runs.
struct Home(tempfile::TempDir);

impl Home {
    /// Makes one whose profile of bash is this.
    fn new(profile: &str) -> Self {
        let home = Home(tempfile::tempdir().expect("create directory"));
        home.write(".bash_profile", profile);
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that records that it is run.
    fn write(&self, name: &str, script: &str) {
        let script = format!("echo run >>~/runs\n{script}");
        std::fs::write(self.path().join(name), script).expect("write profile");
    }

    /// Returns how often the profile was run.
    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    /// Returns a start of bash with this command and a snapshot.
    fn bash(&self, command: &str) -> StartParams {
        self.shell("bash", "/bin/bash", command)
    }

    /// Returns a start of a login shell with this command and a snapshot.
    fn shell(&self, name: &str, path: &str, command: &str) -> StartParams {
        StartParams {
            process_id: "p".to_owned(),
            argv: [path, "-lc", command].map(str::to_owned).to_vec(),
            cwd: PathUri::from_path(self.path()),
            env_policy: Some(EnvPolicy {
                inherit: Inherit::None,
                ..EnvPolicy::default()
            }),
            env: BTreeMap::from([("HOME".to_owned(), self.path().to_str().unwrap().to_owned())]),
            shell_snapshot: Some(ShellSnapshot {
                scope_id: "scope".to_owned(),
                shell: Shell {
                    name: name.to_owned(),
                    path: path.to_owned(),
                },
            }),
            ..StartParams::default()
        }
    }
}

/// The output of a command, both streams in the order of arrival, and its exit code.
type Outcome = (String, i32);

/// An engine and one of its sessions.
struct Fixture {
    engine: Engine,
    session: Session,
}

impl Fixture {
    fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    fn with_limits(limits: Limits) -> Self {
        let engine = engine(limits);
        let (session, _) = open(&engine, Duration::from_secs(60), Delivery::Push);
        Fixture { engine, session }
    }

    /// Starts the process, in an environment whose server has the variable `SERVER`.
    async fn start(&self, params: StartParams) -> Result<Process, StartError> {
        owner::start(&self.engine, &self.session, convert(params)).await
    }

    /// Runs a command to its end.
    async fn run(&self, params: StartParams) -> Outcome {
        let process = timeout(TIMEOUT, self.start(params)).await;
        let process = process.expect("no timeout").expect("it starts");
        let outcome = timeout(TIMEOUT, outcome(&process)).await;
        self.session.forget(&process);
        outcome.expect("it ends")
    }

    /// Runs a command and returns its output. It must succeed.
    async fn output(&self, params: StartParams) -> String {
        let (output, code) = self.run(params).await;
        assert_eq!(code, 0, "{output}");
        output
    }
}

fn convert(params: StartParams) -> Start {
    let variables = [("SERVER", "server"), ("PATH", "/usr/bin:/bin")];
    let environment =
        ServerEnvironment::new(variables.map(|(name, value)| (name.into(), value.into())));
    Start::from_params(params, &environment, &NetworkPolicies::default()).expect("it is valid")
}

async fn outcome(process: &Process) -> Outcome {
    let mut after = Seq::START;
    let mut output = Vec::new();
    loop {
        process.wait_unseen_for(after).await;
        let page = process.page(after, None);
        for chunk in &page.chunks {
            output.extend_from_slice(&chunk.bytes);
        }
        if page.closed {
            let code = page.exit.expect("it has exited").code;
            return (String::from_utf8(output).expect("it is text"), code);
        }
        after = Seq(page.next_seq.0 - 1);
    }
}

/// Waits until a file exists and returns its content.
async fn content(path: PathBuf) -> String {
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    owner::until("the file is written", || read().ends_with('\n')).await;
    read().trim_end().to_owned()
}

/// Checks that output came from the plain login shell, whose profile prints `noise`.
fn assert_plain(outcome: &Outcome, command: &str) {
    assert_eq!(*outcome, (format!("noise\n{command}\n"), 0));
}
