//! What it is like here.

use std::path::{Path, PathBuf};

use outpost_engine::TreeKind;
use outpost_protocol::{EnvironmentCapabilities, EnvironmentInfo, PathUri, ProcessTrees, Shell};

const SHELLS: [&str; 3] = ["bash", "zsh", "sh"];
const SHELL_FOLDERS: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// The host, in the words of a server that would stand on it.
pub(super) fn look(cwd: &Path, trees: TreeKind) -> EnvironmentInfo {
    let home = variable("HOME").map(PathBuf::from);
    let tmpdir = variable("TMPDIR").map(|path| cwd.join(path));
    EnvironmentInfo {
        shell: login_shell().unwrap_or_else(first_shell),
        cwd: PathUri::from_path(cwd),
        user_home_dir: home
            .filter(|home| home.is_absolute())
            .map(|home| PathUri::from_path(&home)),
        platform_os: std::env::consts::OS.to_owned(),
        temporary_directories: tmpdir.iter().map(|path| PathUri::from_path(path)).collect(),
        temp_dir: PathUri::from_path(tmpdir.as_deref().unwrap_or(Path::new("/tmp"))),
        executor_version: env!("CARGO_PKG_VERSION").to_owned(),
        process_trees: match trees {
            TreeKind::Cgroup => ProcessTrees::Cgroup,
            TreeKind::Keeper => ProcessTrees::Keeper,
            TreeKind::Group => ProcessTrees::Group,
        },
        capabilities: EnvironmentCapabilities {
            http_header_env_vars: true,
            ..EnvironmentCapabilities::default()
        },
        sandbox: None,
    }
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The shell that the user logs in with, if commands can be written for it.
fn login_shell() -> Option<Shell> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&uid.as_str()))
        .and_then(|fields| fields.get(6).map(|shell| (*shell).to_owned()));
    shell_at(&of_user.or_else(|| std::env::var("SHELL").ok())?)
}

fn first_shell() -> Shell {
    let paths = SHELLS
        .iter()
        .flat_map(|name| SHELL_FOLDERS.map(|folder| format!("{folder}/{name}")));
    paths
        .into_iter()
        .find_map(|path| shell_at(&path))
        .unwrap_or(Shell {
            name: "sh".to_owned(),
            path: "/bin/sh".to_owned(),
        })
}

fn shell_at(path: &str) -> Option<Shell> {
    let name = Path::new(path).file_name()?.to_str()?;
    let usable = SHELLS.contains(&name) && Path::new(path).is_file();
    usable.then(|| Shell {
        name: name.to_owned(),
        path: path.to_owned(),
    })
}
