//! The destination of the lines.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// A file, or another writer.
pub(super) enum Sink {
    File(PathBuf, File),
    Writer(Box<dyn Write + Send>),
}

impl Sink {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Sink::File(path.to_owned(), open(path)?))
    }

    /// Writes some of the bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Sink::File(_, file) => file.write(bytes),
            Sink::Writer(writer) => writer.write(bytes),
        };
        match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        }
    }

    /// Opens the file again; another writer has none.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Sink::File(path, file) = self {
            *file = open(path)?;
        }
        Ok(())
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Sink::File(path, _) => path.display().to_string(),
            Sink::Writer(_) => "stderr".to_owned(),
        }
    }
}

/// Opens the file. A symbolic link is refused, because it could have been put there to have another file
/// written. A pipe without a reader is refused instead of waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    // The thread waits for a slow reader.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}
