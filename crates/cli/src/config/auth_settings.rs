//! Converts the settings of authentication, and lists the files that protect the server.

use std::{path::PathBuf, time::Duration};

use outpost_engine::sandbox::{Access, planning::OwnPath};
use outpost_server::{AuthSettings, DEFAULT_MAX_CLOCK_SKEW, Listen};

use super::{Config, secret_directories::directory_of};

impl Config {
    /// How clients authenticate.
    pub(crate) fn auth_settings(&self) -> AuthSettings {
        let path = |path: &PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let skew = Duration::from_secs(self.ws_max_clock_skew_seconds.into());
        AuthSettings {
            ws_auth: self.ws_auth,
            ws_token_file: path(&self.ws_token_file),
            // Checked when it was read.
            ws_token_sha256: self.ws_token_sha256.parse().ok(),
            ws_shared_secret_file: path(&self.ws_shared_secret_file),
            jwks_file: path(&self.jwks_file),
            ws_issuer: text(&self.ws_issuer),
            ws_audience: text(&self.ws_audience),
            ws_max_clock_skew: Some(skew).filter(|skew| *skew != DEFAULT_MAX_CLOCK_SKEW),
            tokens_file: path(&self.tokens_file),
            allow_local_users: self.allow_local_users,
            principals: {
                let tables = self.principals.iter();
                tables
                    .map(|(name, table)| (name.clone(), table.settings()))
                    .collect()
            },
        }
    }

    /// The files with which a sandboxed process could pose as a client or as the server, or change who
    /// may connect or what was recorded: they are hidden from it, or read-only.
    pub(crate) fn own_paths(&self) -> Vec<OwnPath> {
        let secrets = [
            &self.ws_token_file,
            &self.ws_shared_secret_file,
            &self.tokens_file,
            &self.tls_key,
        ];
        let audit_log = self.audit_file();
        let public = [&self.jwks_file, &self.tls_cert, &self.tls_client_ca];
        let sockets = self.listen.iter().filter_map(|listen| match listen {
            Listen::Unix(path) => Some(path),
            _ => None,
        });
        let hidden = |path: PathBuf, only_if_present| OwnPath {
            access: Access::Deny,
            only_if_present,
            ..OwnPath::read_only(path)
        };
        // Fails for an empty path.
        let absolute = |path: &PathBuf| std::path::absolute(path).ok();
        let secrets = secrets.into_iter().chain(audit_log);
        let secrets: Vec<_> = secrets.filter_map(absolute).collect();
        let public: Vec<_> = public.into_iter().filter_map(absolute).collect();
        let known = [&secrets[..], &public[..]].concat();
        let directories = secrets.iter();
        let directories = directories.filter_map(|path| directory_of(path, &known));
        let directories: Vec<_> = directories.map(|path| hidden(path, true)).collect();
        let secrets = secrets.into_iter().map(|path| hidden(path, false));
        let public = public.into_iter().map(OwnPath::read_only);
        // A socket has no lasting content, and is bound again when it is missing.
        let sockets = sockets.cloned().map(|path| hidden(path, true));
        let files = secrets.chain(public).chain(sockets);
        files.chain(directories).collect()
    }
}
