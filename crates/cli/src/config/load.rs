//! Reads the files, and the environment.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use super::{
    ConfigError, Layer, Layers, Places, SETTINGS, Source, environment, error::Unreadable, file,
};

/// Nobody writes so much.
const MAX_BYTES: u64 = 1024 * 1024;

/// What every source says, with these flags on top.
pub(crate) fn load(flags: Layer, named: Option<PathBuf>) -> Result<Layers, ConfigError> {
    let places = Places::new(named, |name| std::env::var_os(name));
    let mut layers = vec![flags, environment::layer(SETTINGS, std::env::vars_os())?];
    if let Some(user) = places.user {
        let text = text(&user, places.user_is_named)?;
        layers.push(layer(Source::User(user.clone()), &user, &text)?);
    }
    let text = text(&places.system, false)?;
    layers.push(layer(
        Source::System(places.system.clone()),
        &places.system,
        &text,
    )?);
    Ok(Layers::new(SETTINGS, layers))
}

fn layer(source: Source, file: &Path, text: &str) -> Result<Layer, ConfigError> {
    file::layer(SETTINGS, source, file, text)
}

/// What is in the file; nothing if it doesn't exist and need not.
fn text(file: &Path, must_exist: bool) -> Result<String, ConfigError> {
    let unreadable = |why| ConfigError::Read {
        file: file.to_owned(),
        why,
    };
    match read(file).map_err(unreadable)? {
        Some(text) => Ok(text),
        None if must_exist => Err(unreadable(io::Error::from(Errno::NOENT).into())),
        None => Ok(String::new()),
    }
}

/// What is in the file, if there is one.
pub(crate) fn read(file: &Path) -> Result<Option<String>, Unreadable> {
    // Opening a pipe would wait for somebody to write to it.
    let open = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(file);
    let open = match open {
        // A link to nowhere is there, and somebody put it there.
        Err(error) if is_absence(&error) && !file.is_symlink() => return Ok(None),
        open => open?,
    };
    let kind = open.metadata()?;
    if !(kind.is_file() || kind.is_dir() || is_null(&kind)) {
        return Err(Unreadable::NotAFile);
    }
    let mut bytes = Vec::new();
    open.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Unreadable::TooLarge { limit: MAX_BYTES });
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| Unreadable::NotText)
}

/// `/dev/null`, which is how people say that there is no file.
fn is_null(kind: &Metadata) -> bool {
    kind.file_type().is_char_device() && kind.rdev() == rustix::fs::makedev(1, 3)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
