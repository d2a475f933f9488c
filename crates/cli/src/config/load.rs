//! Reads the files, and the environment.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{ConfigError, Layer, Layers, Places, SETTINGS, Source, environment, file};

/// Nobody writes so much; a device has no end.
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
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        // A link to nowhere is there, and somebody put it there.
        Err(error) if !must_exist && is_absence(&error) && !file.is_symlink() => {
            return Ok(String::new());
        }
        Err(why) => {
            return Err(ConfigError::Read {
                file: file.to_owned(),
                why,
            });
        }
        Ok(_) if bytes.len() as u64 > MAX_BYTES => {
            return Err(ConfigError::TooLarge {
                file: file.to_owned(),
                limit: MAX_BYTES,
            });
        }
        Ok(_) => {}
    }
    String::from_utf8(bytes).map_err(|_| ConfigError::NotText {
        file: file.to_owned(),
    })
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
