//! Tests sandboxed processes and file operations.

mod agent;
mod cancelled_starts;
mod confinement;
mod connections;
mod denials;
mod ends;
mod file_escapes;
mod file_operations;
mod file_streams;
mod in_flight;
mod limits;
mod placeholders;
mod planted_links;
mod shell_snapshots;
mod terminals;

use std::path::{Path, PathBuf};

use outpost_testkit::{Start, file_uri, sh};
use serde_json::{Value, json};

/// A directory with a workspace that sandboxed processes may write, and files beside it.
struct SandboxDirs {
    dir: tempfile::TempDir,
}

impl SandboxDirs {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("workspace")).expect("a workspace");
        SandboxDirs { dir }
    }

    fn workspace(&self) -> PathBuf {
        let path = self.dir.path().join("workspace");
        path.canonicalize().expect("it exists")
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A policy that allows reading everything and writing the workspace, with more entries.
    fn sandbox(&self, more: &[Value]) -> Value {
        let mut entries = vec![special("root", "read"), special("project_roots", "write")];
        entries.extend(more.iter().cloned());
        managed_sandbox(&self.workspace(), &entries)
    }

    /// A script that is sandboxed to the workspace and starts there.
    fn script(&self, id: &str, script: &str) -> Start {
        sh(id, script)
            .cwd(&self.workspace())
            .with("sandbox", self.sandbox(&[]))
    }
}

fn special(kind: &str, access: &str) -> Value {
    json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access})
}

fn managed_sandbox(workspace: &Path, entries: &[Value]) -> Value {
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
