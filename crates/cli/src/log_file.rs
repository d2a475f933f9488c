//! Log rotation for the user's server, whose stderr is a file.

use std::{
    fs::{File, Metadata},
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Size at which the log is rotated. One old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Writes to stderr, and rotates the file behind it. Other writers to stderr follow to the new
/// file.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    written: u64,
}

impl LogFile {
    /// The file behind stderr, if it is one.
    pub(crate) fn of_stderr() -> Option<Self> {
        let metadata = stderr_metadata().ok()?;
        let path = std::fs::read_link("/proc/self/fd/2").ok()?;
        metadata.is_file().then_some(LogFile {
            path,
            written: metadata.len(),
        })
    }

    /// Renames the file and redirects stderr to a new one.
    fn rotate(&self) -> io::Result<()> {
        let (ours, named) = (stderr_metadata()?, std::fs::metadata(&self.path)?);
        // A newer server may own the name by now.
        if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
            return Ok(());
        }
        std::fs::rename(&self.path, rotated_name(&self.path))?;
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
        if self.written >= MAX_BYTES {
            // A failed rotation is retried after another MAX_BYTES.
            self.written = 0;
            let _ = self.rotate();
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

/// The name of the rotated file: `server.log.old`.
fn rotated_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_log_has_suffix_old() {
        let path = Path::new("/run/outpost/server.log");
        assert_eq!(rotated_name(path), Path::new("/run/outpost/server.log.old"));
    }
}
