//! What to start.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use outpost_protocol::{EnvPolicy, PathUri, SandboxParams, Size, StartParams};

/// A process to be started: a program, its arguments, and how it is to run.
///
/// ```
/// # use outpost_client::Start;
/// let start = Start::new(["cargo", "build"])
///     .cwd("/srv/project")
///     .inherit_env()
///     .env("CARGO_TERM_COLOR", "always");
/// ```
#[derive(Clone, Debug)]
pub struct Start {
    pub(crate) id: Option<String>,
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) env_policy: Option<EnvPolicy>,
    pub(crate) tty: bool,
    pub(crate) size: Option<Size>,
    pub(crate) stdin: bool,
    pub(crate) arg0: Option<String>,
    pub(crate) sandbox: Option<SandboxParams>,
    pub(crate) enforce_managed_network: bool,
    pub(crate) managed_network: Option<serde_json::Value>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retain_bytes: Option<u64>,
    pub(crate) kill_grace: Option<Duration>,
}

impl Start {
    /// A program on pipes, without input and with an empty environment, in the
    /// working directory of its place.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Start {
            id: None,
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: None,
            env: BTreeMap::new(),
            env_policy: None,
            tty: false,
            size: None,
            stdin: false,
            arg0: None,
            sandbox: None,
            enforce_managed_network: false,
            managed_network: None,
            metadata: None,
            timeout: None,
            retain_bytes: None,
            kill_grace: None,
        }
    }

    /// A script for `/bin/sh`.
    pub fn shell(script: impl Into<String>) -> Self {
        Start::new(["/bin/sh".to_owned(), "-c".to_owned(), script.into()])
    }

    /// Under this name, instead of one that is made up. It is unique in its
    /// session.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// In this directory of the place.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// With a variable, on top of what it inherits.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// With variables, on top of what it inherits.
    #[must_use]
    pub fn envs<K: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.env
            .extend(variables.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// With the environment of the place, except what looks like a secret.
    #[must_use]
    pub fn inherit_env(self) -> Self {
        self.env_policy(EnvPolicy::default())
    }

    /// With what this policy takes of the environment of the place.
    #[must_use]
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.env_policy = Some(policy);
        self
    }

    /// On a terminal of 24 lines of 80 characters.
    #[must_use]
    pub fn tty(mut self) -> Self {
        self.tty = true;
        self
    }

    /// On a terminal of this size. Beyond the released servers: `resize`.
    #[must_use]
    pub fn size(mut self, rows: u16, cols: u16) -> Self {
        self.tty = true;
        self.size = Some(Size { rows, cols });
        self
    }

    /// With an input that can be written; a terminal always has one.
    #[must_use]
    pub fn stdin(mut self) -> Self {
        self.stdin = true;
        self
    }

    /// What the program sees as its own name.
    #[must_use]
    pub fn arg0(mut self, arg0: impl Into<String>) -> Self {
        self.arg0 = Some(arg0.into());
        self
    }

    /// Confined, best by a [`Sandbox`](crate::Sandbox). What the place can't
    /// enforce it doesn't start.
    #[must_use]
    pub fn sandbox(mut self, sandbox: impl Into<SandboxParams>) -> Self {
        self.sandbox = Some(sandbox.into());
        self
    }

    /// Without any network but the managed one.
    #[must_use]
    pub fn enforce_managed_network(mut self, network: Option<serde_json::Value>) -> Self {
        self.enforce_managed_network = true;
        self.managed_network = network;
        self
    }

    /// With something for the place to keep.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let metadata = self.metadata.get_or_insert_default();
        metadata.insert(name.into(), value.into());
        self
    }

    /// With so much time; then its tree is killed and its exit code is 124.
    /// Beyond the released servers: `timeouts`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With so much of its output retained by the place, at most what that
    /// retains anyway.
    #[must_use]
    pub fn retain_bytes(mut self, bytes: u64) -> Self {
        self.retain_bytes = Some(bytes);
        self
    }

    /// Asked to end before it is made to, when it is terminated. Beyond the
    /// released servers: `terminateTree`.
    #[must_use]
    pub fn kill_grace(mut self, grace: Duration) -> Self {
        self.kill_grace = Some(grace);
        self
    }

    /// As it goes over the wire.
    pub(crate) fn into_params(self, id: String, cwd: PathUri) -> StartParams {
        StartParams {
            process_id: id,
            argv: self.argv,
            cwd,
            env: self.env,
            env_policy: self.env_policy,
            tty: self.tty,
            pipe_stdin: self.stdin && !self.tty,
            arg0: self.arg0,
            sandbox: self.sandbox,
            enforce_managed_network: self.enforce_managed_network,
            managed_network: self.managed_network,
            metadata: self.metadata,
            size: self.size,
            timeout_ms: self.timeout.map(millis),
            retain_bytes: self.retain_bytes,
            kill_grace_ms: self.kill_grace.map(millis),
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
