//! Facts about the server's host, for `environment/info` and `config/read`.

use std::{ffi::OsString, path::PathBuf};

use outpost_engine::{
    ServerEnvironment, TreeKind,
    sandbox::{HostSupport, Level, Unenforceable},
};
use outpost_protocol::{ConfigReadResult, EnvironmentInfo, LimitSupport};

/// The version of this server.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Facts about the host that do not change while the server runs.
#[derive(Clone, Debug)]
pub struct Host {
    /// The environment that children may inherit.
    pub environment: ServerEnvironment,
    /// The result of `environment/info`.
    pub info: EnvironmentInfo,
    /// Directory of the configuration file.
    pub config_folder: PathBuf,
    /// The result of `config/read`, with layers. Empty unless the caller sets it.
    pub configuration: ConfigReadResult,
}

impl Host {
    /// Sets the sandbox support found by the preflight check.
    #[must_use]
    pub fn with_sandbox(mut self, level: Level, found: Result<HostSupport, Unenforceable>) -> Self {
        self.info.capabilities.sandboxed_file_streaming = found.is_ok();
        self.info.capabilities.capability_discovery_sandbox = found.is_ok();
        // Landlock alone can't restrict the network to a proxy.
        let has_proxy = found.is_ok() && level == Level::Namespaces;
        self.info.capabilities.network_proxy_launch = has_proxy;
        self.info.capabilities.network_proxy_review_domains = has_proxy;
        self.info.sandbox = Some(outpost_engine::sandbox_support(level, found));
        self
    }

    /// Sets which limits of processes can be enforced.
    #[must_use]
    pub fn with_limits(mut self, support: LimitSupport) -> Self {
        self.info.limits = Some(support);
        self
    }

    /// Inspects this process and its host. `trees` is how process trees are tracked.
    #[must_use]
    pub fn detect(trees: TreeKind) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let home = non_empty("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let config_folder = non_empty("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home.as_ref().map(|home| home.join(".config")))
            .unwrap_or_else(|| PathBuf::from("/etc"))
            .join("outpost");
        Host {
            environment: ServerEnvironment::new(std::env::vars_os()),
            info: outpost_engine::detect_environment(&cwd, trees),
            config_folder,
            configuration: ConfigReadResult::default(),
        }
    }
}

fn non_empty(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
