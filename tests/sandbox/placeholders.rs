//! Paths that are absent and have to stay so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outpost_testkit::{file_uri, patience, sh};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Site;
use crate::{outpost, ready};

#[tokio::test]
async fn protected_names_cannot_be_created_and_nothing_is_left_of_the_attempt() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let workspace = site.workspace();
    for name in [".git", ".agents", ".codex", ".aws"] {
        let script = format!("mkdir {name} || touch {name}/x");
        let story = client.run(site.script(name, &script)).await;
        assert_ne!(story.code(), 0);
        assert!(story.denied(), "{}", story.stderr());
    }
    let left: Vec<_> = std::fs::read_dir(&workspace).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    // What lifts it is asking for it.
    let git = json!({
        "path": {"type": "path", "path": file_uri(&workspace.join(".git"))},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    let start = sh("p", "mkdir .git && touch .git/x")
        .cwd(&workspace)
        .with("sandbox", site.sandbox(&[git]));
    let story = client.run(start).await;
    assert_eq!(story.code(), 0, "{}", story.stderr());
    assert!(workspace.join(".git/x").exists());
}

#[tokio::test]
async fn who_hears_of_the_end_finds_nothing_left() {
    let (_server, client) = ready().await;
    let site = Site::new();
    for round in 0..20 {
        let id = round.to_string();
        client.start(site.script(&id, "exit 3")).await;
        client.exited(&id).await;
        let left = std::fs::read_dir(site.workspace()).expect("a folder");
        assert_eq!(left.count(), 0, "round {round}");
    }
}

#[tokio::test]
async fn one_that_ends_takes_nothing_from_another() {
    let (server, client) = ready().await;
    let other_server = outpost().start().await;
    let other = other_server.client().await;
    let site = Site::new();
    let tries = "read x; mkdir .git/x";
    client.start(site.script("long", tries).stdin()).await;
    other.start(site.script("long", tries).stdin()).await;
    client.run(site.script("short", "true")).await;
    other.run(site.script("short", "true")).await;
    for client in [&client, &other] {
        assert!(site.workspace().join(".git").exists());
        client.write("long", b"\n", "w").await;
        let story = client.closed("long").await;
        assert!(story.denied(), "{}", story.stderr());
    }
    assert!(!site.workspace().join(".git").exists());
    drop(server);
}

#[tokio::test]
async fn what_somebody_has_put_there_meanwhile_stays() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let git = site.workspace().join(".git");
    client.start(site.script("p", "read x").stdin()).await;
    std::fs::write(git.join("HEAD"), "ref").expect("it is a folder like any other");
    client.write_last("p", b"\n").await;
    client.closed("p").await;
    assert_eq!(
        std::fs::read(git.join("HEAD")).expect("it is there"),
        b"ref"
    );
}

fn walk() -> Value {
    json!({"maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false})
}

/// Clients look for `.git` here and above to find out what is a repository.
#[tokio::test]
async fn to_who_looks_from_outside_nothing_is_there() {
    const MISSING: (i64, &str) = (-32004, "No such file or directory (os error 2)");
    let (_server, client) = ready().await;
    let site = Site::new();
    let at = |name: &str| json!(file_uri(&site.workspace().join(name)));
    std::os::unix::fs::symlink(site.workspace(), site.outside("link")).expect("a link");
    std::fs::write(site.workspace().join("file"), "").expect("a file");
    client.start(site.script("p", "read x").stdin()).await;
    let git = site.workspace().join(".git");
    let linked = json!(file_uri(&site.outside("link/.git")));
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
            let error = client.fails(method, params).await;
            assert_eq!(error.parts(), MISSING, "{method} of {path}");
        }
    }
    let unfollowed = json!({"path": at(".git"), "followSymlinks": false});
    let error = client.fails("fs/getMetadata", unfollowed).await;
    assert_eq!(error.parts(), MISSING);
    // To remove what isn't there changes nothing, or the process would be free to make it.
    client
        .call("fs/remove", json!({"path": at(".git"), "recursive": true}))
        .await;
    assert!(git.exists());
    let only_the_file = json!([{"fileName": "file", "isDirectory": false, "isFile": true}]);
    let copy = json!(file_uri(&site.outside("copy")));
    let whole = json!({"sourcePath": at(""), "destinationPath": copy, "recursive": true});
    client.call("fs/copy", whole).await;
    for path in [at(""), copy, json!(file_uri(&site.outside("link")))] {
        let listed = client.call("fs/readDirectory", json!({"path": path})).await;
        assert_eq!(listed["entries"], only_the_file, "{path}");
    }
    let mut confined = json!({"path": at("")});
    confined["sandbox"] = site.sandbox(&[]);
    let listed = client.call("fs/readDirectory", confined).await;
    assert_eq!(listed["entries"], only_the_file);
    let walked = json!({"path": at(""), "options": walk()});
    let walked = client.call("fs/walk", walked).await;
    assert_eq!(
        walked["entries"],
        json!([{"path": at("file"), "kind": "file"}])
    );
    // Nor is it to who is confined to something else, or granted what this one is kept from.
    let own = json!({
        "path": {"type": "path", "path": at(".git")},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    for sandbox in [Site::new().sandbox(&[]), site.sandbox(&[own])] {
        let params = json!({"path": at(".git"), "sandbox": sandbox});
        let error = client.fails("fs/getMetadata", params).await;
        assert_eq!(error.parts(), MISSING);
        let params = json!({"path": at(""), "sandbox": sandbox});
        let listed = client.call("fs/readDirectory", params).await;
        assert_eq!(listed["entries"], only_the_file);
    }
    // Once there is something in it, it is there.
    std::fs::write(git.join("HEAD"), "ref").expect("it is a folder like any other");
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

/// It belongs to whoever has made it, and stays; the process is kept from it all the same.
#[tokio::test]
async fn who_makes_the_directory_from_outside_has_made_it() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let at = |name: &str| json!(file_uri(&site.workspace().join(name)));
    client
        .start(
            site.script("p", "read x; touch .git/x || touch .codex/x")
                .stdin(),
        )
        .await;
    let empty = site.outside("empty");
    std::fs::create_dir(&empty).expect("a folder");
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
    let error = client.fails("fs/createDirectory", again).await;
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
async fn what_a_killed_server_left_is_taken_away_by_the_next() {
    let mut server = outpost().start().await;
    let client = server.client().await;
    let site = Site::new();
    client.start(site.script("p", "sleep 1000")).await;
    server.signal(Signal::KILL);
    server.ended().await;
    let server = outpost().start().await;
    let client = server.client().await;
    let story = client.run(site.script("p", "mkdir .git/x")).await;
    assert!(story.denied(), "it is no folder of anybody's");
    let left = std::fs::read_dir(site.workspace()).expect("a folder");
    assert_eq!(left.count(), 0);
}

/// It may live on, with some kinds of trees, until the next server starts. Its walls stand on what is
/// mounted over a placeholder, and fall with that.
#[tokio::test]
async fn what_a_killed_server_left_running_is_kept_from_what_it_was_kept_from() {
    for trees in ["auto", "keeper", "group"] {
        let other_server = outpost().start().await;
        let other = other_server.client().await;
        let mut server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let site = Site::new();
        let script = "while [ ! -e go ]; do sleep 0.01; done; mkdir -p .git/hooks; echo x > tried";
        client.start(site.script("p", script)).await;
        server.signal(Signal::KILL);
        server.ended().await;
        other.run(site.script("q", "true")).await;
        std::fs::write(site.workspace().join("go"), "").expect("it is written");
        patience::seen("it to have tried, or to be gone", || {
            let tried = site.workspace().join("tried").exists();
            (tried || server.mark().living().is_empty()).then_some(())
        })
        .await;
        assert!(!site.workspace().join(".git/hooks").exists(), "{trees}");
        drop(client);
    }
}

#[tokio::test]
async fn where_one_may_write_what_another_may_not_nothing_is_left() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let git = json!({
        "path": {"type": "special", "value": {"kind": "project_roots", "subpath": ".git"}},
        "access": "write",
        "missing_path_behavior": "skip",
    });
    let wider = |id: &str, script: &str| {
        let start = sh(id, script).cwd(&site.workspace());
        start.with("sandbox", site.sandbox(std::slice::from_ref(&git)))
    };
    let left = || {
        std::fs::read_dir(site.workspace())
            .expect("a folder")
            .count()
    };
    let end = async |id: &str| {
        client.write_last(id, b"\n").await;
        client.closed(id).await
    };
    // The other one ends first.
    client.start(site.script("a", "read x").stdin()).await;
    let story = client.run(wider("b", "touch .git/x && rm .git/x")).await;
    assert_eq!(story.code(), 0, "{}", story.stderr());
    end("a").await;
    assert_eq!(left(), 0);
    // It ends last, and somebody has come in between, who is still kept from it.
    client.start(site.script("c", "read x").stdin()).await;
    client
        .start(wider("d", "read x; mkdir -p .git/.git && touch .git/.git/x").stdin())
        .await;
    client
        .start(
            site.script("e", "read x; mkdir -p .git && touch .git/x")
                .stdin(),
        )
        .await;
    end("c").await;
    assert!(end("d").await.denied(), "its own protected names");
    assert!(end("e").await.denied());
    assert_eq!(left(), 0);
    // What it makes of it stays.
    client.start(site.script("f", "read x").stdin()).await;
    client.run(wider("g", "echo ref > .git/HEAD")).await;
    end("f").await;
    assert!(site.workspace().join(".git/HEAD").exists());
}

/// As of other users in a temporary directory: theirs are no placeholders to us.
#[tokio::test]
async fn who_comes_and_goes_meanwhile_stops_nobody() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let git = site.workspace().join(".git");
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
            // Either may be refused, where a placeholder of ours is in the way.
            let _ = std::fs::create_dir(&git);
            run_some();
            let _ = std::fs::remove_dir(&git);
            run_some();
        }
    });
    let mut started = 0;
    for round in 0..40 {
        let start = site.script(&round.to_string(), "true");
        let asked = client.request_start(start).await;
        started += usize::from(client.answer(asked).await.is_ok());
    }
    over.store(true, Ordering::Relaxed);
    other.join().expect("it ends");
    assert!(started > 30, "{started} of 40");
}
