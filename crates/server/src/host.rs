//! What there is to know about the machine the server stands on.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use outpost_engine::{
    ServerEnvironment, TreeKind,
    sandbox::{Level, Means, Unenforceable},
};
use outpost_protocol::{
    ConfigReadResult, EnvironmentCapabilities, EnvironmentInfo, PathUri, Shell,
};

use crate::convert;

/// The version of this server.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
const SHELLS: [&str; 3] = ["bash", "zsh", "sh"];
const SHELL_FOLDERS: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// Facts about the host that stay the same while the server runs.
#[derive(Clone, Debug)]
pub struct Host {
    /// What children may inherit.
    pub environment: ServerEnvironment,
    /// What `environment/info` says.
    pub info: EnvironmentInfo,
    /// Where the configuration lives.
    pub config_folder: PathBuf,
    /// What `config/read` says, with its layers. Whoever has read the
    /// configuration puts it here.
    pub configuration: ConfigReadResult,
}

impl Host {
    /// With what was found out about confining processes here.
    #[must_use]
    pub fn with_sandbox(mut self, level: Level, found: Result<Means, Unenforceable>) -> Self {
        self.info.capabilities.sandboxed_file_streaming = found.is_ok();
        self.info.sandbox = Some(convert::sandbox_support(level, found));
        self
    }

    /// Looks at this process and its machine, where trees are of this kind.
    #[must_use]
    pub fn look(trees: TreeKind) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let home = non_empty("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let tmpdir = non_empty("TMPDIR").map(|path| cwd.join(path));
        let shell = login_shell().unwrap_or_else(fallback_shell);
        let config_folder = non_empty("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home.as_ref().map(|home| home.join(".config")))
            .unwrap_or_else(|| PathBuf::from("/etc"))
            .join("outpost");
        Host {
            environment: ServerEnvironment::new(std::env::vars_os()),
            info: EnvironmentInfo {
                shell,
                cwd: PathUri::from_path(&cwd),
                user_home_dir: home
                    .or_else(|| own_field(5).map(PathBuf::from))
                    .filter(|home| home.is_absolute())
                    .map(|home| PathUri::from_path(&home)),
                platform_os: std::env::consts::OS.to_owned(),
                temporary_directories: tmpdir.iter().map(|path| PathUri::from_path(path)).collect(),
                temp_dir: PathUri::from_path(tmpdir.as_deref().unwrap_or(Path::new("/tmp"))),
                executor_version: VERSION.to_owned(),
                process_trees: convert::process_trees(trees),
                capabilities: EnvironmentCapabilities {
                    http_header_env_vars: true,
                    ..EnvironmentCapabilities::default()
                },
                sandbox: None,
            },
            config_folder,
            configuration: ConfigReadResult::default(),
        }
    }
}

fn non_empty(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A field of the user's own entry among the users of this machine.
fn own_field(number: usize) -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut entries = passwd.lines().map(|line| line.split(':'));
    let mut own = entries.find(|fields| fields.clone().nth(2) == Some(&uid))?;
    own.nth(number).map(str::to_owned)
}

/// The user's login shell, if it is one that commands can be written for.
fn login_shell() -> Option<Shell> {
    let path = own_field(6).or_else(|| std::env::var("SHELL").ok())?;
    let name = Path::new(&path).file_name()?.to_str()?.to_owned();
    (SHELLS.contains(&name.as_str()) && Path::new(&path).is_file()).then_some(Shell { name, path })
}

/// The first shell that exists.
fn fallback_shell() -> Shell {
    let all = SHELLS.iter().flat_map(|name| {
        SHELL_FOLDERS
            .iter()
            .map(move |folder| (name, format!("{folder}/{name}")))
    });
    let (name, path) = all
        .into_iter()
        .find(|(_, path)| Path::new(path).is_file())
        .unwrap_or((&"sh", "/bin/sh".to_owned()));
    Shell {
        name: (*name).to_owned(),
        path,
    }
}
