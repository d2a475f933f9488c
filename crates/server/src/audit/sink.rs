//! The destination of the lines.

use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// The permissions of users other than the owner.
const OTHERS: u32 = 0o077;

/// An open file.
pub(super) struct LineFile {
    file: File,
    /// The file ends within a line: that of a server that was killed, or one that is written again because the
    /// file was opened again.
    is_within_line: bool,
}

/// A file, or another writer.
pub(super) enum Sink {
    File(PathBuf, LineFile),
    Writer(Box<dyn Write + Send>),
}

impl Sink {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Sink::File(path.to_owned(), LineFile::open(path)?))
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
            *file = LineFile::open(path)?;
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

impl LineFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let metadata = file.metadata()?;
        let is_within_line = metadata.is_file() && metadata.len() > 0 && !ends_line(&file);
        if metadata.is_file() && metadata.mode() & OTHERS != 0 {
            let file = path.display();
            tracing::warn!(%file, "the audit log can be read or written by others; set its mode to 0600");
        }
        Ok(LineFile {
            file,
            is_within_line,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_within_line {
            match self.file.write(b"\n")? {
                0 => return Ok(0),
                _ => self.is_within_line = false,
            }
        }
        self.file.write(bytes)
    }
}

/// Whether the last byte of a file ends a line. False if it cannot be read; an empty line does no harm.
fn ends_line(file: &File) -> bool {
    // The file is open for writing only, because a pipe must not be open for reading.
    let reader = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let last = reader.and_then(|reader| {
        let end = reader.metadata()?.len().saturating_sub(1);
        let mut last = [0];
        reader.read_exact_at(&mut last, end)?;
        Ok(last)
    });
    last.is_ok_and(|last| last == *b"\n")
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn line_after_a_fragment_is_a_line_of_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("audit.log");
        fs::write(&path, "frag").expect("a file");
        let mut sink = Sink::open(&path).expect("a file");
        sink.write(b"one\ntw").expect("written");
        sink.reopen().expect("a file");
        sink.write(b"two\n").expect("written");
        sink.reopen().expect("a file");
        sink.write(b"three\n").expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "frag\none\ntw\ntwo\nthree\n");
    }
}
