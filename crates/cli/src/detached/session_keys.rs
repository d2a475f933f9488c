//! Keys of detached work on servers that don't list their sessions.
//!
//! The id of a session grants access to it, and every user of this host can read the arguments of a
//! command in `/proc`. So a command gets the id of the process, and a private file has the session.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use outpost_client::public_address;
use outpost_engine::sandbox::{Access, planning::OwnPath};
use serde::{Deserialize, Serialize};

use crate::state_directory;

/// The stored keys of this user: a file for each process, named like it.
pub(super) struct SessionKeys {
    directory: PathBuf,
}

/// The content of a file.
#[derive(Deserialize, Serialize)]
struct Stored {
    /// The server, without credentials.
    server: String,
    /// The id of the session.
    session: String,
}

/// The key of a process.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SessionKey {
    pub(super) process: String,
    pub(super) session: String,
}

impl SessionKeys {
    pub(super) fn of_user() -> anyhow::Result<Self> {
        state_directory::of_user().map(Self::in_state).context(
            "cannot locate the keys of detached work: HOME is not set; set it, or XDG_STATE_HOME",
        )
    }

    /// The directory of the keys, as a path that sandboxed processes must not see. Most users never
    /// have one: it is hidden from the processes that start once it exists.
    pub(super) fn own_path() -> Option<OwnPath> {
        Some(OwnPath {
            path: Self::of_user().ok()?.directory,
            access: Access::Deny,
            creates: false,
            only_if_present: true,
        })
    }

    fn in_state(state: PathBuf) -> Self {
        SessionKeys {
            directory: state.join("sessions"),
        }
    }

    /// Stores the key of a process that is about to be started.
    pub(super) fn add(&self, server: &str, key: &SessionKey) -> anyhow::Result<()> {
        let path = self.directory.join(&key.process);
        let add = || {
            let create = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.directory);
            create?;
            let stored = serde_json::to_vec(&Stored {
                server: server_name(server),
                session: key.session.clone(),
            })?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(&stored)
        };
        add().with_context(|| {
            format!(
                "cannot store the key of the process in {}; set XDG_STATE_HOME to a directory of yours",
                path.display()
            )
        })
    }

    /// Finds the key of a process on a server, by the id of the process or a prefix of it.
    pub(super) fn find(&self, server: &str, prefix: &str) -> anyhow::Result<Option<SessionKey>> {
        let server = server_name(server);
        let mut here = Vec::new();
        let mut elsewhere = Vec::new();
        for process in self.processes_with(prefix)? {
            let Some(stored) = read(&self.directory.join(&process)) else {
                continue;
            };
            if stored.server == server {
                let session = stored.session;
                here.push(SessionKey { process, session });
            } else {
                elsewhere.push((process, stored.server));
            }
        }
        let exact = |key: &SessionKey| key.process == prefix;
        if here.iter().any(exact) {
            here.retain(exact);
        }
        match (&here[..], &elsewhere[..]) {
            ([_, _, ..], _) => {
                let names: Vec<_> = here.iter().map(|key| key.process.as_str()).collect();
                let names = names.join(", ");
                bail!("{prefix} is ambiguous: it matches {names}; use a longer prefix");
            }
            ([], [(process, other)]) => bail!(
                "no process {process} on {server}: it was started on {other}; use --on {other}"
            ),
            _ => Ok(here.pop()),
        }
    }

    /// The server of the only process with this prefix.
    pub(super) fn server_of(&self, prefix: &str) -> Option<String> {
        match &self.processes_with(prefix).ok()?[..] {
            [process] => Some(read(&self.directory.join(process))?.server),
            _ => None,
        }
    }

    /// Removes the key of a process that is gone.
    pub(super) fn remove(&self, process: &str) {
        // A key that stays is useless, but harmless.
        let _ = fs::remove_file(self.directory.join(process));
    }

    /// The ids of all processes with this prefix.
    fn processes_with(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {}", self.shown()))?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names
            .filter(|name| !prefix.is_empty() && name.starts_with(prefix))
            .collect())
    }

    /// The directory, for messages.
    pub(super) fn shown(&self) -> String {
        self.directory.display().to_string()
    }
}

/// Reads a file. A file that others could have written is ignored.
fn read(path: &Path) -> Option<Stored> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    let private = metadata.is_file() && own && metadata.mode() & 0o077 == 0;
    private.then(|| serde_json::from_reader(file).ok())?
}

/// The server of a URL, in one spelling and without credentials.
fn server_name(url: &str) -> String {
    public_address(url).trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SERVER: &str = "ws://127.0.0.1:7777";

    fn keys(state: &Path) -> SessionKeys {
        SessionKeys::in_state(state.to_owned())
    }

    fn add(keys: &SessionKeys, server: &str, process: &str) {
        let key = SessionKey {
            process: process.to_owned(),
            session: format!("key-of-{process}"),
        };
        keys.add(server, &key).unwrap();
    }

    fn found(keys: &SessionKeys, server: &str, prefix: &str) -> Result<Option<String>, String> {
        let key = keys.find(server, prefix).map_err(|error| error.to_string());
        key.map(|key| key.map(|key| key.session))
    }

    #[test]
    fn key_is_private_and_found_by_prefix_and_server() {
        let state = tempfile::tempdir().unwrap();
        let keys = keys(state.path());
        assert_eq!(found(&keys, SERVER, "abc"), Ok(None));
        add(&keys, "ws://me:secret@127.0.0.1:7777/", "abcd");
        add(&keys, SERVER, "abxy");
        add(&keys, "wss://build", "zzzz");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&keys.directory), 0o700);
        assert_eq!(mode(&keys.directory.join("abcd")), 0o600);
        let text = fs::read_to_string(keys.directory.join("abcd")).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(found(&keys, SERVER, "abc"), Ok(Some("key-of-abcd".into())));
        assert_eq!(found(&keys, SERVER, ""), Ok(None));
        assert_eq!(found(&keys, SERVER, "nope"), Ok(None));
        let ambiguous = found(&keys, SERVER, "ab").unwrap_err();
        assert!(ambiguous.contains("ambiguous"), "{ambiguous}");
        let elsewhere = found(&keys, SERVER, "zzzz").unwrap_err();
        assert!(elsewhere.contains("--on wss://build"), "{elsewhere}");
        keys.remove("abcd");
        assert_eq!(found(&keys, SERVER, "abcd"), Ok(None));
    }

    #[test]
    fn file_open_to_others_is_ignored() {
        let state = tempfile::tempdir().unwrap();
        let keys = keys(state.path());
        add(&keys, SERVER, "abcd");
        let file = keys.directory.join("abcd");
        fs::set_permissions(file, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(found(&keys, SERVER, "abcd"), Ok(None));
    }
}
