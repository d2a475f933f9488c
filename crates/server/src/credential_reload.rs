//! Reloads token, key and certificate files when they change.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf, sync::Arc, time::Duration};

use tokio::task::JoinSet;

use crate::{AuditLog, Server, auth::TokenSource, server::ServerState};

/// Interval of the check. A revoked token must be noticed within five seconds.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The number of checks after which files are read although they changed at each check. Until then,
/// changing files are not read, because they may be half written.
const MAX_UNSETTLED_CHECKS: u32 = 4;

/// The number of checks after which a failed reload is repeated, although no file has changed.
const CHECKS_PER_RETRY: u32 = 60;

/// The version of a file: device, inode, size, and the time of the last change of its metadata, which
/// cannot be set back.
type Version = Option<(u64, u64, u64, i64, i64)>;

impl Server {
    /// Reads the files of tokens, keys and certificates again when they change, until the server shuts
    /// down. Open connections stay, except those whose token is no longer valid.
    pub async fn follow_credential_files(&self) {
        let mut followers = JoinSet::new();
        for files in self.credential_files() {
            followers.spawn(files.follow(Arc::clone(&self.state)));
        }
        self.state.ending.cancelled().await;
    }

    /// Whether there are files for [`Server::reload_files`].
    #[must_use]
    pub fn has_files_to_reload(&self) -> bool {
        let audits_to_file = |audit: &Arc<AuditLog>| audit.is_file();
        !self.credential_files().is_empty()
            || self
                .state
                .settings
                .audit
                .as_ref()
                .is_some_and(audits_to_file)
    }

    /// Makes [`Server::follow_credential_files`] read the files again, changed or not, and opens the audit
    /// log again. If a new file cannot be used, the previously loaded content or file stays in use.
    pub fn reload_files(&self) {
        self.state.reload_requests.send_replace(());
        if let Some(audit) = &self.state.settings.audit {
            audit.reopen();
        }
    }

    fn credential_files(&self) -> Vec<CredentialFiles> {
        let settings = &self.state.settings;
        let of_tokens = settings.auth.files().map(|(source, path)| CredentialFiles {
            source: Source::Token(source),
            paths: vec![path.to_owned()],
        });
        let of_tls = settings.tls.iter().map(|tls| CredentialFiles {
            source: Source::Tls,
            paths: tls.files().map(ToOwned::to_owned).collect(),
        });
        of_tokens.chain(of_tls).collect()
    }
}

/// Files that are read together. Each group has its own task: if the file system of one group hangs,
/// tokens in the files of other groups can still be revoked.
#[derive(Clone, Debug)]
struct CredentialFiles {
    source: Source,
    paths: Vec<PathBuf>,
}

/// The kind of credentials that a group of files contains.
#[derive(Clone, Copy, Debug)]
enum Source {
    Token(TokenSource),
    Tls,
}

impl CredentialFiles {
    async fn follow(self, server: Arc<ServerState>) {
        let mut requests = server.reload_requests.subscribe();
        let mut changes = Changes::default();
        // The files may have changed since the server loaded them.
        changes.check(self.versions().await);
        changes.record_reload(self.reload(&server).await);
        loop {
            let is_requested = tokio::select! {
                () = server.ending.cancelled() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => false,
                // The sender lives as long as `server`.
                _ = requests.changed() => true,
            };
            if changes.check(self.versions().await) || is_requested {
                let is_used = self.reload(&server).await;
                if is_used {
                    tracing::info!(files = ?self.paths, "credentials reloaded");
                }
                changes.record_reload(is_used);
            }
        }
    }

    /// Returns the versions of the files.
    async fn versions(&self) -> Vec<Version> {
        let version = |file: &PathBuf| {
            let found = fs::metadata(file).ok()?;
            Some((
                found.dev(),
                found.ino(),
                found.size(),
                found.ctime(),
                found.ctime_nsec(),
            ))
        };
        let versions = self.blocking(move |files| files.paths.iter().map(version).collect());
        versions.await.unwrap_or_default()
    }

    /// Reads the files. Returns whether they could be used.
    async fn reload(&self, server: &Arc<ServerState>) -> bool {
        let server = Arc::clone(server);
        let read = self.blocking(move |files| {
            let settings = &server.settings;
            match (files.source, &settings.tls, files.paths.first()) {
                (Source::Token(source), _, Some(path)) => {
                    let read = settings.auth.reload(source, path);
                    read.map_err(|error| {
                        tracing::error!(%error, "cannot reload credentials; keeping the old ones");
                    })
                }
                (Source::Tls, Some(tls), _) => tls.reload().map_err(|error| {
                    tracing::error!(%error, "cannot reload the certificate; keeping the old one");
                }),
                _ => Ok(()),
            }
        });
        read.await.is_some_and(|read| read.is_ok())
    }

    /// Runs work in a thread that may block, because the files may be on a network. Returns `None` if the
    /// runtime shuts down.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CredentialFiles) -> T + Send + 'static,
    ) -> Option<T> {
        let files = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.ok()
    }
}

/// Decides when files are read again. Pure.
#[derive(Debug, Default)]
struct Changes {
    /// The versions that were read last.
    read: Vec<Version>,
    /// The versions of the last check.
    seen: Vec<Version>,
    /// Checks in a row that found further changes.
    unsettled_checks: u32,
    /// Checks since the last reload, if it failed.
    checks_since_failure: Option<u32>,
}

impl Changes {
    /// Records the versions of a check. Returns whether to read the files. A half-written file could be
    /// valid with fewer tokens, so files that changed since the last check are not read yet.
    fn check(&mut self, now: Vec<Version>) -> bool {
        let is_settled = now == self.seen || self.unsettled_checks >= MAX_UNSETTLED_CHECKS;
        self.seen = now;
        self.checks_since_failure = self.checks_since_failure.map(|checks| checks + 1);
        if self.seen == self.read {
            return self.checks_since_failure == Some(CHECKS_PER_RETRY);
        }
        if !is_settled {
            self.unsettled_checks += 1;
        }
        is_settled
    }

    /// Records that the files were read, and whether all could be used.
    fn record_reload(&mut self, all_used: bool) {
        self.read.clone_from(&self.seen);
        self.unsettled_checks = 0;
        self.checks_since_failure = (!all_used).then_some(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Vec<Version> {
        vec![Some((1, number, 0, 0, 0))]
    }

    /// A server that has read the first version.
    fn started() -> Changes {
        let mut changes = Changes::default();
        changes.check(version(1));
        changes.record_reload(true);
        changes
    }

    #[test]
    fn changed_file_is_read_once_it_has_settled() {
        let mut changes = started();
        assert!(!changes.check(version(1)));
        assert!(!changes.check(version(2)), "it may be incomplete");
        assert!(!changes.check(version(3)), "it was");
        assert!(changes.check(version(3)));
        changes.record_reload(true);
        assert!(!changes.check(version(3)));
        assert!(
            !changes.check(version(2)) && changes.check(version(2)),
            "again"
        );
    }

    #[test]
    fn file_that_never_settles_is_read_in_time() {
        let mut changes = started();
        let checks = (2..).take_while(|number| !changes.check(version(*number)));
        let checks = checks.count() as u32 + 1;
        assert_eq!(checks, MAX_UNSETTLED_CHECKS + 1);
        assert!(CHECK_INTERVAL * checks < Duration::from_secs(4), "of five");
    }

    #[test]
    fn failed_reload_is_repeated_without_a_change() {
        let mut changes = started();
        changes.check(version(2));
        assert!(changes.check(version(2)));
        changes.record_reload(false);
        let mut checks = (1..).filter(|_| changes.check(version(2)));
        assert_eq!(checks.next(), Some(CHECKS_PER_RETRY));
        changes.record_reload(true);
        assert!((0..2 * CHECKS_PER_RETRY).all(|_| !changes.check(version(2))));
    }
}
