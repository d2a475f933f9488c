//! The log of a server that nobody watches: a file on stderr that doesn't grow
//! without end.

use std::{
    fs::{File, Metadata},
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// How large the log grows before it is put aside. One old one is kept.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Writes to stderr, and puts the file that is there aside when it is full.
/// Whatever else writes to stderr goes to the new file from then on too.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    written: u64,
}

impl LogFile {
    /// The file on stderr, if there is one.
    pub(crate) fn of_stderr() -> Option<Self> {
        let metadata = stderr_metadata().ok()?;
        let path = std::fs::read_link("/proc/self/fd/2").ok()?;
        metadata.is_file().then_some(LogFile {
            path,
            written: metadata.len(),
        })
    }

    /// Begins a new file under the same name.
    fn put_aside(&self) -> io::Result<()> {
        let (ours, named) = (stderr_metadata()?, std::fs::metadata(&self.path)?);
        // A server that came after us may have the name by now.
        if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
            return Ok(());
        }
        std::fs::rename(&self.path, old(&self.path))?;
        let new = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)?;
        rustix::stdio::dup2_stderr(&new)?;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = io::stderr().write(line)?;
        self.written += written as u64;
        if self.written >= MOST_BYTES {
            // If it can't be done now, it is tried again after as much again.
            self.written = 0;
            let _ = self.put_aside();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stderr_metadata() -> io::Result<Metadata> {
    std::fs::metadata("/proc/self/fd/2")
}

/// Where the full one goes: `server.log.old`.
fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_one_stands_beside_it() {
        let path = Path::new("/run/outpost/server.log");
        assert_eq!(old(path), Path::new("/run/outpost/server.log.old"));
    }
}
