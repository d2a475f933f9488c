//! What a coding agent really sends, and really does.

use std::path::{Path, PathBuf};
use std::process::Command;

use outpost_testkit::{Client, Start, sh};
use serde_json::{Value, json};

use super::{Site, managed, special};
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
    managed(workspace, &entries)
}

async fn run(client: &Client, start: Start, site: &Site) -> String {
    let id = start.id().to_owned();
    let workspace = site.workspace();
    let start = start.cwd(&workspace).with("sandbox", profile(&workspace));
    let answer = client.start(start).await;
    assert_eq!(answer["sandboxType"], "linuxSeccomp");
    let story = client.closed(&id).await;
    assert_eq!(story.code(), 0, "{} {}", story.stdout(), story.stderr());
    assert!(!story.denied());
    story.stdout()
}

#[tokio::test]
async fn a_pipeline_works() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let script = "printf 'b\\na\\nb\\n' > list && sort list | uniq -c | tee counted | wc -l; \
                  x=$(mktemp) && echo $x > $x && cat $x >/dev/null && rm $x";
    let said = run(&client, sh("p", script), &site).await;
    assert_eq!(said, "2\n");
    assert!(site.workspace().join("counted").exists());
}

#[tokio::test]
async fn git_works_and_its_folder_stays_as_it_is() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let workspace = site.workspace();
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(&workspace)
        .status();
    assert!(made.expect("git runs").success());
    std::fs::write(workspace.join("file"), "x").expect("a file");
    let said = run(&client, sh("p", "git status --short"), &site).await;
    assert_eq!(said, "?? file\n");
    let refused = sh("q", "git add file")
        .cwd(&workspace)
        .with("sandbox", profile(&workspace));
    let story = client.run(refused).await;
    assert_ne!(story.code(), 0);
    assert!(story.denied(), "{}", story.stderr());
}

#[tokio::test]
async fn a_compiler_works() {
    let Some(compiler) = compiler() else {
        // Whoever runs this has none: it is root's, and in root's folders.
        return;
    };
    let (_server, client) = ready().await;
    let site = Site::new();
    std::fs::write(
        site.workspace().join("main.rs"),
        "fn main() { println!(\"compiled\"); }",
    )
    .expect("a program");
    let script = format!("{} main.rs && ./main", compiler.display());
    let home = std::env::var("HOME").unwrap_or_default();
    let path = "/usr/local/bin:/usr/bin:/bin";
    let start = sh("p", &script).env(&[("PATH", path), ("HOME", &home)]);
    assert_eq!(run(&client, start, &site).await, "compiled\n");
}

/// The one that belongs to the cargo that runs us.
fn compiler() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    let compiler = cargo.with_file_name("rustc");
    let version = Command::new(&compiler).arg("--version").output().ok()?;
    version.status.success().then_some(compiler)
}
