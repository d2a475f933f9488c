//! Detects facts about this host, for `environment/info`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use outpost_sandbox::{HostSupport, Level, Unenforceable};
use outpost_types::{
    EnvironmentCapabilities, EnvironmentInfo, PathUri, Shell, TreeKind,
    sandbox::{SandboxSupport, SandboxType},
};
use sha2::{Digest as _, Sha256};

const SHELLS: [&str; 3] = ["bash", "zsh", "sh"];
const SHELL_DIRECTORIES: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// Inspects this process and its host. Sandbox support is not checked here.
#[must_use]
pub fn detect_environment(cwd: &Path, process_trees: TreeKind) -> EnvironmentInfo {
    let home = home_directory(std::env::var_os("HOME"), || passwd_field(5));
    let tmpdir = std::env::var_os("TMPDIR").filter(|value| !value.is_empty());
    let tmpdir = tmpdir.map(|path| cwd.join(path));
    EnvironmentInfo {
        shell: login_shell().unwrap_or_else(fallback_shell),
        executor_version: env!("CARGO_PKG_VERSION").to_owned(),
        provider_id: provider_id(),
        cwd: PathUri::from_path(cwd),
        user_home_dir: home.map(|home| PathUri::from_path(&home)),
        platform_os: std::env::consts::OS.to_owned(),
        temporary_directories: tmpdir.iter().map(|path| PathUri::from_path(path)).collect(),
        temp_dir: PathUri::from_path(tmpdir.as_deref().unwrap_or(Path::new("/tmp"))),
        process_trees,
        capabilities: EnvironmentCapabilities {
            fs_watch_missing: true,
            shell_snapshot_v2: true,
            capability_discovery_v2: true,
            environment_config_read: true,
            http_header_env_vars: true,
            file_write_streaming: true,
            ..EnvironmentCapabilities::default()
        },
        sandbox: None,
        limits: None,
    }
}

/// Identifies this program by name, version and platform. A hash of the binary would take longer than
/// the start of the server.
fn provider_id() -> String {
    let program = concat!("outpost ", env!("CARGO_PKG_VERSION"));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let digest = Sha256::digest(format!("{program} {os} {arch}"));
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// Describes the result of a sandbox preflight.
#[must_use]
pub fn sandbox_support(level: Level, found: Result<HostSupport, Unenforceable>) -> SandboxSupport {
    let reason = found.err().map(|reason| reason.to_string());
    SandboxSupport {
        kind: match reason {
            None => SandboxType::LinuxSeccomp,
            Some(_) => SandboxType::None,
        },
        level,
        reason,
    }
}

/// `$HOME`, or the directory in `/etc/passwd` if it is unset or relative.
fn home_directory(
    home: Option<OsString>,
    passwd: impl FnOnce() -> Option<String>,
) -> Option<PathBuf> {
    home.map(PathBuf::from)
        .filter(|home| home.is_absolute())
        .or_else(|| passwd().map(PathBuf::from))
        .filter(|home| home.is_absolute())
}

/// A field of the current user's line in `/etc/passwd`.
fn passwd_field(number: usize) -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut entries = passwd.lines().map(|line| line.split(':'));
    let mut own = entries.find(|fields| fields.clone().nth(2) == Some(&uid))?;
    own.nth(number).map(str::to_owned)
}

/// The user's login shell, if it is a supported one.
fn login_shell() -> Option<Shell> {
    let path = passwd_field(6).or_else(|| std::env::var("SHELL").ok())?;
    let name = Path::new(&path).file_name()?.to_str()?.to_owned();
    (SHELLS.contains(&name.as_str()) && Path::new(&path).is_file()).then_some(Shell { name, path })
}

/// The first supported shell that exists.
fn fallback_shell() -> Shell {
    let in_all = |name| SHELL_DIRECTORIES.map(|directory| (name, format!("{directory}/{name}")));
    let mut all = SHELLS.into_iter().flat_map(in_all);
    let found = all.find(|(_, path)| Path::new(path).is_file());
    let (name, path) = found.unwrap_or(("sh", "/bin/sh".to_owned()));
    Shell {
        name: name.to_owned(),
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_home_falls_back_to_passwd() {
        let detect = |home: Option<&str>, passwd: Option<&str>| {
            home_directory(home.map(Into::into), || passwd.map(str::to_owned))
        };
        assert_eq!(detect(Some("/a"), Some("/b")), Some("/a".into()));
        assert_eq!(detect(Some("a"), Some("/b")), Some("/b".into()));
        assert_eq!(detect(Some(""), Some("/b")), Some("/b".into()));
        assert_eq!(detect(None, Some("/b")), Some("/b".into()));
        assert_eq!(detect(None, Some("b")), None);
        assert_eq!(detect(None, None), None);
    }
}
