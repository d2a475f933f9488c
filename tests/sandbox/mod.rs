//! Confined processes.

mod agent;
mod denials;
mod ends;
mod file_escapes;
mod file_operations;
mod file_streams;
mod placeholders;
mod terminals;
mod walls;

use std::path::{Path, PathBuf};

use outpost_testkit::{Start, file_uri, sh};
use serde_json::{Value, json};

/// A folder with a workspace that confined processes may write, and things beside it.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("workspace")).expect("a workspace");
        Site { folder }
    }

    fn workspace(&self) -> PathBuf {
        let path = self.folder.path().join("workspace");
        path.canonicalize().expect("it is there")
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Everything may be read and the workspace may be written; and these entries.
    fn sandbox(&self, more: &[Value]) -> Value {
        let mut entries = vec![special("root", "read"), special("project_roots", "write")];
        entries.extend(more.iter().cloned());
        managed(&self.workspace(), &entries)
    }

    /// A script that is confined to the workspace, and starts there.
    fn script(&self, id: &str, script: &str) -> Start {
        sh(id, script)
            .cwd(&self.workspace())
            .with("sandbox", self.sandbox(&[]))
    }
}

fn special(kind: &str, access: &str) -> Value {
    json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access})
}

fn managed(workspace: &Path, entries: &[Value]) -> Value {
    json!({
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "cwd": file_uri(workspace),
        "workspaceRoots": [file_uri(workspace)],
        "windowsSandboxLevel": "disabled",
        "useLegacyLandlock": false,
    })
}
