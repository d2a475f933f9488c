//! A server with named tokens and configured principals.

use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Server, ServerCommand};
use serde_json::{Value, json};

use super::new_token;
use crate::outpost;

/// Directories beside each other: a workspace, and files that principals must not reach.
pub(super) struct Directories {
    dir: tempfile::TempDir,
}

impl Directories {
    pub(super) fn new() -> Self {
        let directories = Directories {
            dir: tempfile::tempdir().expect("a directory"),
        };
        for (path, text) in [
            ("ws/own", "own"),
            ("ws/key.pem", "pem"),
            ("ws/sub/own", "own"),
            ("outside/file", "outside"),
            (
                "secret/config.toml",
                "[mcp_servers.s]\ncommand = \"secret\"\n",
            ),
        ] {
            let path = directories.path(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        std::os::unix::fs::symlink("../outside", directories.path("ws/link")).expect("a link");
        directories
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        let base = self.dir.path().canonicalize().expect("it exists");
        base.join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A server with these principals, to be changed and started.
    pub(super) fn server(&self, config: &str) -> ServerCommand {
        let file = self.path("outpost.toml");
        std::fs::write(&file, config).expect("a file");
        let (file, tokens) = (self.text("outpost.toml"), self.tokens());
        outpost().args(&["--config", &file, "--tokens-file", &tokens])
    }

    fn tokens(&self) -> String {
        self.text("tokens.toml")
    }

    /// Creates a token of a principal.
    pub(super) async fn token(&self, name: &str) -> String {
        self.token_with(name, &[]).await
    }

    /// Creates a token of a principal, with more arguments.
    pub(super) async fn token_with(&self, name: &str, more: &[&str]) -> String {
        new_token(&self.tokens(), name, more).await
    }
}

/// A client that may call the methods of the exec-server and the app-server.
pub(super) async fn app_client(server: &Server, token: &str) -> Client {
    let client = server.connect_with_token(token).await;
    let params = json!({
        "clientName": "testkit",
        "capabilities": {"experimentalApi": true},
    });
    client.call("initialize", params).await;
    client.notify("initialized", json!({})).await;
    client
}

/// The sandbox that grants these entries, and the network.
pub(super) fn managed(entries: &[Value], network: &str, roots: &[&Path]) -> Value {
    let roots = roots.iter().map(|root| outpost_testkit::file_uri(root));
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": network,
        },
        "workspaceRoots": roots.collect::<Vec<_>>(),
    })
}

pub(super) fn special(kind: &str, access: &str) -> Value {
    json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access})
}

pub(super) fn entry(path: &Path, access: &str) -> Value {
    let path = outpost_testkit::file_uri(path);
    json!({"path": {"type": "path", "path": path}, "access": access})
}

pub(super) fn pattern(pattern: &str) -> Value {
    json!({"path": {"type": "glob_pattern", "pattern": pattern}, "access": "deny"})
}
