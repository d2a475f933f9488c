//! Tests placeholders: absent paths that a sandboxed process must not create.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outpost_testkit::{deadline, file_uri, sh};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::SandboxDirs;
use crate::{outpost, ready};

#[tokio::test]
async fn protected_names_cannot_be_created_and_leave_nothing() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let workspace = dirs.workspace();
    for name in [".git", ".agents", ".codex", ".aws"] {
        let script = format!("mkdir {name} || touch {name}/x");
        let log = client.run(dirs.script(name, &script)).await;
        assert_ne!(log.code(), 0);
        assert!(log.denied(), "{}", log.stderr());
    }
    let left: Vec<_> = std::fs::read_dir(&workspace)
        .expect("a directory")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // An explicit grant lifts the protection.
    let git = json!({
        "path": {"type": "path", "path": file_uri(&workspace.join(".git"))},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    let start = sh("p", "mkdir .git && touch .git/x")
        .cwd(&workspace)
        .with("sandbox", dirs.sandbox(&[git]));
    let log = client.run(start).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    assert!(workspace.join(".git/x").exists());
}

#[tokio::test]
async fn nothing_is_left_when_the_close_is_reported() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    for round in 0..20 {
        let id = round.to_string();
        client.start(dirs.script(&id, "exit 3")).await;
        client.exited(&id).await;
        let left = std::fs::read_dir(dirs.workspace()).expect("a directory");
        assert_eq!(left.count(), 0, "round {round}");
    }
}

#[tokio::test]
async fn ending_process_does_not_affect_another() {
    let (server, client) = ready().await;
    let other_server = outpost().start().await;
    let other = other_server.client().await;
    let dirs = SandboxDirs::new();
    let script = "read x; mkdir .git/x";
    client.start(dirs.script("long", script).stdin()).await;
    other.start(dirs.script("long", script).stdin()).await;
    client.run(dirs.script("short", "true")).await;
    other.run(dirs.script("short", "true")).await;
    for client in [&client, &other] {
        assert!(dirs.workspace().join(".git").exists());
        client.write("long", b"\n", "w").await;
        let log = client.closed("long").await;
        assert!(log.denied(), "{}", log.stderr());
    }
    assert!(!dirs.workspace().join(".git").exists());
    drop(server);
}

#[tokio::test]
async fn files_put_into_a_placeholder_stay() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let git = dirs.workspace().join(".git");
    client.start(dirs.script("p", "read x").stdin()).await;
    std::fs::write(git.join("HEAD"), "ref").expect("an ordinary directory");
    client.write_last("p", b"\n").await;
    client.closed("p").await;
    assert_eq!(std::fs::read(git.join("HEAD")).expect("it exists"), b"ref");
}

fn walk() -> Value {
    json!({"maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false})
}

/// Clients look for `.git` in a directory and its parents to find repositories.
#[tokio::test]
async fn placeholder_is_invisible_to_file_operations() {
    const MISSING: (i64, &str) = (-32004, "No such file or directory (os error 2)");
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let at = |name: &str| json!(file_uri(&dirs.workspace().join(name)));
    std::os::unix::fs::symlink(dirs.workspace(), dirs.outside("link")).expect("a link");
    std::fs::write(dirs.workspace().join("file"), "").expect("a file");
    client.start(dirs.script("p", "read x").stdin()).await;
    let git = dirs.workspace().join(".git");
    let linked = json!(file_uri(&dirs.outside("link/.git")));
    for path in [at(".git"), at(".codex"), linked] {
        let copy = json!({"sourcePath": path, "destinationPath": at("copy"), "recursive": true});
        for (method, params) in [
            ("fs/getMetadata", json!({"path": path})),
            ("fs/readFile", json!({"path": path})),
            ("fs/open", json!({"path": path, "handleId": "h"})),
            ("fs/canonicalize", json!({"path": path})),
            ("fs/readDirectory", json!({"path": path})),
            ("fs/walk", json!({"path": path, "options": walk()})),
            ("fs/copy", copy),
            ("fs/remove", json!({"path": path, "force": false})),
        ] {
            let error = client.call_fails(method, params).await;
            assert_eq!(error.parts(), MISSING, "{method} of {path}");
        }
    }
    let unfollowed = json!({"path": at(".git"), "followSymlinks": false});
    let error = client.call_fails("fs/getMetadata", unfollowed).await;
    assert_eq!(error.parts(), MISSING);
    // Removing the placeholder has no effect; otherwise the process could create the path.
    client
        .call("fs/remove", json!({"path": at(".git"), "recursive": true}))
        .await;
    assert!(git.exists());
    let only_the_file = json!([{"fileName": "file", "isDirectory": false, "isFile": true}]);
    let copy = json!(file_uri(&dirs.outside("copy")));
    let whole = json!({"sourcePath": at(""), "destinationPath": copy, "recursive": true});
    client.call("fs/copy", whole).await;
    for path in [at(""), copy, json!(file_uri(&dirs.outside("link")))] {
        let listed = client.call("fs/readDirectory", json!({"path": path})).await;
        assert_eq!(listed["entries"], only_the_file, "{path}");
    }
    let mut sandboxed = json!({"path": at("")});
    sandboxed["sandbox"] = dirs.sandbox(&[]);
    let listed = client.call("fs/readDirectory", sandboxed).await;
    assert_eq!(listed["entries"], only_the_file);
    let walked = json!({"path": at(""), "options": walk()});
    let walked = client.call("fs/walk", walked).await;
    assert_eq!(
        walked["entries"],
        json!([{"path": at("file"), "kind": "file"}])
    );
    // It is also invisible to operations with another sandbox, or with a grant for this path.
    let own = json!({
        "path": {"type": "path", "path": at(".git")},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    for sandbox in [SandboxDirs::new().sandbox(&[]), dirs.sandbox(&[own])] {
        let params = json!({"path": at(".git"), "sandbox": sandbox});
        let error = client.call_fails("fs/getMetadata", params).await;
        assert_eq!(error.parts(), MISSING);
        let params = json!({"path": at(""), "sandbox": sandbox});
        let listed = client.call("fs/readDirectory", params).await;
        assert_eq!(listed["entries"], only_the_file);
    }
    // Once it has an entry, it is an ordinary directory.
    std::fs::write(git.join("HEAD"), "ref").expect("an ordinary directory");
    let found = client
        .call("fs/getMetadata", json!({"path": at(".git")}))
        .await;
    assert_eq!(found["isDirectory"], true);
    let listed = client
        .call("fs/readDirectory", json!({"path": at("")}))
        .await;
    assert_eq!(listed["entries"][0]["fileName"], ".git");
    client.write_last("p", b"\n").await;
    client.closed("p").await;
}

/// The directory stays afterwards, and the process still can't write it.
#[tokio::test]
async fn created_directory_claims_the_placeholder() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let at = |name: &str| json!(file_uri(&dirs.workspace().join(name)));
    client
        .start(
            dirs.script("p", "read x; touch .git/x || touch .codex/x")
                .stdin(),
        )
        .await;
    let empty = dirs.outside("empty");
    std::fs::create_dir(&empty).expect("a directory");
    let copy = json!({
        "sourcePath": file_uri(&empty), "destinationPath": at(".agents"), "recursive": true,
    });
    for (method, params) in [
        (
            "fs/createDirectory",
            json!({"path": at(".git"), "recursive": false}),
        ),
        ("fs/createDirectory", json!({"path": at(".codex")})),
        ("fs/copy", copy),
    ] {
        client.call(method, params).await;
    }
    let again = json!({"path": at(".git"), "recursive": false});
    let error = client.call_fails("fs/createDirectory", again).await;
    assert_eq!(error.parts(), (-32603, "File exists (os error 17)"));
    client
        .call("fs/getMetadata", json!({"path": at(".git")}))
        .await;
    client.write_last("p", b"\n").await;
    assert!(client.closed("p").await.denied());
    let listed = client
        .call("fs/readDirectory", json!({"path": at("")}))
        .await;
    let names = listed["entries"].as_array().expect("a list").iter();
    let names: Vec<_> = names.map(|entry| entry["fileName"].clone()).collect();
    assert_eq!(names, [".agents", ".codex", ".git"]);
}

#[tokio::test]
async fn placeholders_of_a_killed_server_are_removed() {
    let mut server = outpost().start().await;
    let client = server.client().await;
    let dirs = SandboxDirs::new();
    client.start(dirs.script("p", "sleep 1000")).await;
    server.signal(Signal::KILL);
    server.wait().await;
    let server = outpost().start().await;
    let client = server.client().await;
    let log = client.run(dirs.script("p", "mkdir .git/x")).await;
    assert!(
        log.denied(),
        "the placeholder was taken for a user's directory"
    );
    let left = std::fs::read_dir(dirs.workspace()).expect("a directory");
    assert_eq!(left.count(), 0);
}

/// Without another start: an empty `.git` would be taken for a repository.
#[tokio::test]
async fn placeholders_of_a_killed_server_end_with_its_processes() {
    for trees in ["auto", "subreaper", "group"] {
        let mut server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        let go = dirs.outside("go");
        let script = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
        client.start(dirs.script("p", &script)).await;
        assert!(dirs.workspace().join(".git").exists(), "{trees}");
        server.signal(Signal::KILL);
        server.wait().await;
        std::fs::write(&go, "").expect("written");
        let left = || {
            let names = std::fs::read_dir(dirs.workspace()).expect("a directory");
            names.count()
        };
        deadline::poll_until("the removal of all placeholders", || {
            (left() == 0).then_some(())
        })
        .await;
        drop(client);
    }
}

/// With some kinds of trees they live on until the next server starts. Their confinement depends on
/// the mount over a placeholder, which must not be removed.
#[tokio::test]
async fn processes_of_a_killed_server_stay_sandboxed() {
    for trees in ["auto", "subreaper", "group"] {
        let other_server = outpost().start().await;
        let other = other_server.client().await;
        let mut server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        let script = "while [ ! -e go ]; do sleep 0.01; done; mkdir -p .git/hooks; echo x > tried";
        client.start(dirs.script("p", script)).await;
        server.signal(Signal::KILL);
        server.wait().await;
        other.run(dirs.script("q", "true")).await;
        std::fs::write(dirs.workspace().join("go"), "").expect("written");
        deadline::poll_until("the attempt or the end", || {
            let tried = dirs.workspace().join("tried").exists();
            (tried || server.tag().living().is_empty()).then_some(())
        })
        .await;
        assert!(!dirs.workspace().join(".git/hooks").exists(), "{trees}");
        drop(client);
    }
}

#[tokio::test]
async fn shared_path_with_different_grants_leaves_nothing() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let git = json!({
        "path": {"type": "special", "value": {"kind": "project_roots", "subpath": ".git"}},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    let wider = |id: &str, script: &str| {
        let start = sh(id, script).cwd(&dirs.workspace());
        start.with("sandbox", dirs.sandbox(std::slice::from_ref(&git)))
    };
    let left = || {
        std::fs::read_dir(dirs.workspace())
            .expect("a directory")
            .count()
    };
    let end = async |id: &str| {
        client.write_last(id, b"\n").await;
        client.closed(id).await
    };
    // The process with the wider grant ends first.
    client.start(dirs.script("a", "read x").stdin()).await;
    let log = client.run(wider("b", "touch .git/x && rm .git/x")).await;
    assert_eq!(log.code(), 0, "{}", log.stderr());
    end("a").await;
    assert_eq!(left(), 0);
    // The process with the wider grant ends later, after another process without the grant has started.
    client.start(dirs.script("c", "read x").stdin()).await;
    client
        .start(wider("d", "read x; mkdir -p .git/.git && touch .git/.git/x").stdin())
        .await;
    client
        .start(
            dirs.script("e", "read x; mkdir -p .git && touch .git/x")
                .stdin(),
        )
        .await;
    end("c").await;
    assert!(end("d").await.denied(), "its own protected names");
    assert!(end("e").await.denied());
    assert_eq!(left(), 0);
    // Files that the wider grant creates stay.
    client.start(dirs.script("f", "read x").stdin()).await;
    client.run(wider("g", "echo ref > .git/HEAD")).await;
    end("f").await;
    assert!(dirs.workspace().join(".git/HEAD").exists());
}

/// Simulates other users' placeholders in a temporary directory, which this server doesn't know.
#[tokio::test]
async fn concurrent_placeholders_do_not_fail_starts() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let git = dirs.workspace().join(".git");
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let other = std::thread::spawn(move || {
        let run_some = || {
            for _ in 0..10 {
                let ran = std::process::Command::new("true").status();
                assert!(ran.expect("it runs").success());
            }
        };
        while !is_over.load(Ordering::Relaxed) {
            // Either may fail while the server has a placeholder there.
            let _ = std::fs::create_dir(&git);
            run_some();
            let _ = std::fs::remove_dir(&git);
            run_some();
        }
    });
    let mut started = 0;
    for round in 0..40 {
        let start = dirs.script(&round.to_string(), "true");
        let request = client.request_start(start).await;
        started += usize::from(client.response(request).await.is_ok());
    }
    over.store(true, Ordering::Relaxed);
    other.join().expect("it ends");
    assert!(started > 30, "{started} of 40");
}
