//! Locates and reads the configuration files.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use outpost_engine::sandbox::planning::OwnPath;
use outpost_server::ConfigSource as Source;
use rustix::{fs::OFlags, io::Errno};

use super::{
    Config, Layer, Layers,
    sources::{environment_layer, file_layer},
};

/// Names a file to read instead of the user's.
pub(super) const CONFIG_VARIABLE: &str = "OUTPOST_CONFIG";
const FILE: &str = "outpost/outpost.toml";
const SYSTEM_DIRECTORY: &str = "/etc";
const MAX_BYTES: u64 = 1024 * 1024;

/// Paths of the configuration files, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFiles {
    /// The user's file; none if there is no home directory.
    pub(crate) user: Option<PathBuf>,
    /// The user's file was named by a flag or a variable, so it has to exist.
    pub(crate) user_is_named: bool,
    pub(crate) system: PathBuf,
}

impl ConfigFiles {
    /// `named` is the value of `--config`.
    pub(crate) fn new(named: Option<PathBuf>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let named = named.or_else(|| path(CONFIG_VARIABLE));
        let user_is_named = named.is_some();
        let default = || {
            path("XDG_CONFIG_HOME")
                .filter(|directory| directory.is_absolute())
                .or_else(|| path("HOME").map(|home| home.join(".config")))
                .filter(|directory| directory.is_absolute())
                .map(|directory| directory.join(FILE))
        };
        ConfigFiles {
            user: named.or_else(default),
            user_is_named,
            system: PathBuf::from(SYSTEM_DIRECTORY).join(FILE),
        }
    }
}

impl ConfigFiles {
    /// The files that no sandboxed process may change: they decide how the next one is sandboxed.
    pub(crate) fn own_paths(&self) -> Vec<OwnPath> {
        let mut own = Vec::new();
        let user = self.user.iter().map(|file| (file, true));
        for (file, is_users) in user.chain([(&self.system, false)]) {
            let Ok(file) = std::path::absolute(file) else {
                continue;
            };
            // A named file may be in a project; otherwise the directory is ours.
            let directory = file.parent().filter(|_| !(is_users && self.user_is_named));
            own.extend(directory.map(|directory| OwnPath {
                creates: is_users,
                ..OwnPath::read_only(directory.to_owned())
            }));
            own.push(OwnPath::read_only(file));
        }
        own
    }
}

/// Reads every source. `flags` has the highest precedence; `named` is the value of
/// `--config`.
pub(crate) fn load(flags: Layer, named: Option<PathBuf>) -> anyhow::Result<Layers> {
    let files = ConfigFiles::new(named, |name| std::env::var_os(name));
    let mut layers = vec![flags, environment_layer(std::env::vars_os())?];
    if let Some(user) = files.user {
        let text = text(&user, files.user_is_named)?;
        let file = user.display().to_string();
        layers.push(file_layer(Source::User { file }, &user, &text)?);
    }
    let text = text(&files.system, false)?;
    let file = files.system.display().to_string();
    layers.push(file_layer(Source::System { file }, &files.system, &text)?);
    Ok(Layers::new(layers))
}

/// The effective configuration of a command without flags for settings. `named` is the value of
/// `--config`.
pub(crate) fn load_config(named: Option<PathBuf>) -> anyhow::Result<Config> {
    load(Layer::new(Source::CommandLine), named)?.config()
}

/// The content of a file; empty if it doesn't exist and need not.
fn text(file: &Path, must_exist: bool) -> anyhow::Result<String> {
    let text = match read_file(file) {
        Ok(None) if must_exist => Err(io::Error::from(Errno::NOENT).into()),
        text => text.map(Option::unwrap_or_default),
    };
    text.with_context(|| format!("cannot read {}", file.display()))
}

/// The content of a file, if it exists.
pub(crate) fn read_file(file: &Path) -> anyhow::Result<Option<String>> {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    let open = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(file);
    let open = match open {
        // A dangling symlink is an error: the user meant to have a file here.
        Err(error) if is_absent(&error) && !file.is_symlink() => return Ok(None),
        open => open?,
    };
    let metadata = open.metadata()?;
    if !(metadata.is_file() || metadata.is_dir() || is_dev_null(&metadata)) {
        // Reading it might never begin or never end.
        bail!("it is a pipe, a socket or a device");
    }
    let mut bytes = Vec::new();
    open.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("it is larger than {MAX_BYTES} bytes");
    }
    let text = String::from_utf8(bytes).ok();
    text.context("it is not UTF-8 text").map(Some)
}

/// `--config /dev/null` is the usual way to use no file.
fn is_dev_null(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == rustix::fs::makedev(1, 3)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(named: Option<&str>, variables: &[(&str, &str)]) -> (Option<PathBuf>, bool) {
        let files = ConfigFiles::new(named.map(PathBuf::from), |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        });
        assert_eq!(files.system, PathBuf::from("/etc/outpost/outpost.toml"));
        (files.user, files.user_is_named)
    }

    #[test]
    fn own_paths_are_the_files_and_their_own_directories() {
        let own = |named: Option<&str>| {
            let named = named.map(PathBuf::from);
            let files = ConfigFiles::new(named, |name| (name == "HOME").then(|| "/h".into()));
            let own = files.own_paths().into_iter();
            own.map(|own| (own.path.display().to_string(), own.creates))
                .collect::<Vec<_>>()
        };
        let system = [
            ("/etc/outpost".to_owned(), false),
            ("/etc/outpost/outpost.toml".to_owned(), false),
        ];
        let user = [
            ("/h/.config/outpost".to_owned(), true),
            ("/h/.config/outpost/outpost.toml".to_owned(), false),
        ];
        assert_eq!(own(None), [&user[..], &system].concat());
        let named = [("/p/o.toml".to_owned(), false)];
        assert_eq!(own(Some("/p/o.toml")), [&named[..], &system].concat());
    }

    #[test]
    fn user_file_is_named_or_in_the_config_directory() {
        let home = ("HOME", "/h");
        let default = (Some("/h/.config/outpost/outpost.toml".into()), false);
        assert_eq!(user(None, &[home]), default);
        assert_eq!(
            user(None, &[home, ("XDG_CONFIG_HOME", "/x")]),
            (Some("/x/outpost/outpost.toml".into()), false)
        );
        for nothing in ["", "relative"] {
            assert_eq!(user(None, &[home, ("XDG_CONFIG_HOME", nothing)]), default);
        }
        assert_eq!(user(None, &[]), (None, false));
        let named = ("OUTPOST_CONFIG", "o.toml");
        assert_eq!(user(None, &[home, named]), (Some("o.toml".into()), true));
        assert_eq!(user(None, &[home, ("OUTPOST_CONFIG", "")]), default);
        assert_eq!(
            user(Some("f.toml"), &[home, named]),
            (Some("f.toml".into()), true)
        );
    }
}
