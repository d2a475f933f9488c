//! Tests the profile and the commands of a real coding agent.

use std::path::{Path, PathBuf};
use std::process::Command;

use outpost_testkit::{Client, Start, sh};
use serde_json::{Value, json};

use super::{SandboxDirs, managed_sandbox, special};
use crate::ready;

/// The profile of a released agent.
fn profile(workspace: &Path) -> Value {
    let mut entries = vec![
        special("root", "read"),
        special("project_roots", "write"),
        special("slash_tmp", "write"),
        special("tmpdir", "write"),
    ];
    for name in [".git", ".agents", ".codex", ".aws"] {
        entries.push(json!({
            "path": {"type": "special", "value": {"kind": "project_roots", "subpath": name}},
            "access": "read",
            "missing_path_behavior": "skip",
        }));
    }
    managed_sandbox(workspace, &entries)
}

async fn run(client: &Client, start: Start, dirs: &SandboxDirs) -> String {
    let id = start.id().to_owned();
    let workspace = dirs.workspace();
    let start = start.cwd(&workspace).with("sandbox", profile(&workspace));
    let response = client.start(start).await;
    assert_eq!(response["sandboxType"], "linuxSeccomp");
    let log = client.closed(&id).await;
    assert_eq!(log.code(), 0, "{} {}", log.stdout(), log.stderr());
    assert!(!log.denied());
    log.stdout()
}

#[tokio::test]
async fn pipeline_works() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "printf 'b\\na\\nb\\n' > list && sort list | uniq -c | tee counted | wc -l; \
                  x=$(mktemp) && echo $x > $x && cat $x >/dev/null && rm $x";
    let printed = run(&client, sh("p", script), &dirs).await;
    assert_eq!(printed, "2\n");
    assert!(dirs.workspace().join("counted").exists());
}

#[tokio::test]
async fn git_works_and_its_directory_is_unchanged() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let workspace = dirs.workspace();
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(&workspace)
        .status();
    assert!(made.expect("git runs").success());
    std::fs::write(workspace.join("file"), "x").expect("a file");
    let printed = run(&client, sh("p", "git status --short"), &dirs).await;
    assert_eq!(printed, "?? file\n");
    let rejected = sh("q", "git add file")
        .cwd(&workspace)
        .with("sandbox", profile(&workspace));
    let log = client.run(rejected).await;
    assert_ne!(log.code(), 0);
    assert!(log.denied(), "{}", log.stderr());
}

#[tokio::test]
async fn compiler_works() {
    let Some(compiler) = compiler() else {
        // This user can't run the compiler: it is installed in root's home directory.
        return;
    };
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    std::fs::write(
        dirs.workspace().join("main.rs"),
        "fn main() { println!(\"compiled\"); }",
    )
    .expect("a program");
    let script = format!("{} main.rs && ./main", compiler.display());
    let home = std::env::var("HOME").unwrap_or_default();
    let path = "/usr/local/bin:/usr/bin:/bin";
    let start = sh("p", &script).env(&[("PATH", path), ("HOME", &home)]);
    assert_eq!(run(&client, start, &dirs).await, "compiled\n");
}

/// The compiler next to the cargo that runs this test.
fn compiler() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    let compiler = cargo.with_file_name("rustc");
    let version = Command::new(&compiler).arg("--version").output().ok()?;
    version.status.success().then_some(compiler)
}
