//! Tests that a principal with roots works below them.

use outpost_testkit::{Client, Server, base64, file_uri, sh, unbase64};
use serde_json::{Value, json};

use super::support::{Directories, app_client, managed, special};

struct Roots {
    directories: Directories,
    _server: Server,
    client: Client,
}

impl Roots {
    async fn new() -> Self {
        Self::with("").await
    }

    /// With another setting of the principal.
    async fn with(setting: &str) -> Self {
        let directories = Directories::new();
        std::os::unix::fs::symlink("ws", directories.path("alias")).expect("a link");
        let config = format!(
            "[principals.ci]\nroots = [\"{}\"]\n{setting}\n",
            directories.text("alias")
        );
        let token = directories.token("ci").await;
        let server = directories.server(&config).start().await;
        Roots {
            client: app_client(&server, &token).await,
            directories,
            _server: server,
        }
    }

    fn uri(&self, name: &str) -> String {
        file_uri(&self.directories.path(name))
    }

    async fn refused(&self, method: &str, params: Value) {
        let error = self.client.call_fails(method, params.clone()).await;
        let (code, message) = error.parts();
        assert_eq!(code, -32011, "{method} {params}: {message}");
        let text = "is not below one of the roots of the principal";
        assert!(message.ends_with(text), "{message}");
    }
}

#[tokio::test]
async fn working_directory_must_lie_below_a_root() {
    let roots = Roots::new().await;
    for cwd in ["ws", "alias", "ws/sub", "ws/sub/..", "outside/../ws"] {
        let log = roots
            .client
            .run(sh(cwd, "pwd").cwd(&roots.directories.path(cwd)))
            .await;
        assert_eq!(log.code(), 0, "{cwd}");
    }
    for cwd in [
        "",
        "outside",
        "ws/..",
        "ws/link",
        "ws/link/x",
        "ws/missing/../../outside",
        "missing",
    ] {
        let error = roots
            .client
            .start_fails(sh("p", "pwd").cwd(&roots.directories.path(cwd)));
        assert_eq!(error.await.parts().0, -32011, "{cwd}");
    }
    // Missing directories below a root fail like those of others.
    let missing = roots.directories.path("ws/missing");
    let error = roots.client.start_fails(sh("p", "pwd").cwd(&missing)).await;
    assert_eq!(error.parts().0, -32603);
    let outside = roots.directories.path("outside");
    let ws = roots.directories.path("ws");
    let sandbox = managed(&[special("root", "read")], "restricted", &[&outside]);
    let error = roots
        .client
        .start_fails(sh("p", "true").cwd(&ws).with("sandbox", sandbox))
        .await;
    assert_eq!(error.parts().0, -32011);
}

#[tokio::test]
async fn default_working_directory_is_the_first_root() {
    let roots = Roots::new().await;
    let ws = roots.directories.text("ws");
    let info = roots.client.call("environment/info", json!({})).await;
    assert_eq!(info["cwd"], roots.uri("ws"));
    let result = roots
        .client
        .call("command/exec", json!({"command": ["pwd"]}))
        .await;
    assert_eq!(result["stdout"], format!("{ws}\n"));
}

#[tokio::test]
async fn replaced_root_is_none() {
    let roots = Roots::new().await;
    let (ws, moved) = (
        roots.directories.path("ws"),
        roots.directories.path("moved"),
    );
    let run = async |id| roots.client.run(sh(id, "true").cwd(&ws)).await.code();
    assert_eq!(run("before").await, 0);
    std::fs::rename(&ws, &moved).expect("it is moved");
    let error = roots.client.start_fails(sh("p", "true").cwd(&moved)).await;
    assert_eq!(error.parts().0, -32011);
    std::os::unix::fs::symlink(roots.directories.path("outside"), &ws).expect("a link");
    let error = roots.client.start_fails(sh("p", "true").cwd(&ws)).await;
    assert_eq!(error.parts().0, -32011);
    roots
        .refused("fs/readFile", json!({"path": roots.uri("ws/file")}))
        .await;
    std::fs::remove_file(&ws).expect("the link");
    std::fs::rename(&moved, &ws).expect("it is moved back");
    assert_eq!(run("after").await, 0);
}

#[tokio::test]
async fn file_operations_must_lie_below_a_root() {
    let roots = Roots::new().await;
    let uri = |name: &str| roots.uri(name);
    let client = &roots.client;
    let write = |name: &str| json!({"path": uri(name), "dataBase64": base64("new")});
    client.call("fs/writeFile", write("ws/new")).await;
    client
        .call("fs/createDirectory", json!({"path": uri("ws/.git")}))
        .await;
    client.call("fs/writeFile", write("ws/.git/config")).await;
    let read = client
        .call("fs/readFile", json!({"path": uri("alias/.git/config")}))
        .await;
    assert_eq!(unbase64(&read["dataBase64"]), b"new");
    let copy = |from: &str, to: &str| json!({"sourcePath": uri(from), "destinationPath": uri(to)});
    client.call("fs/copy", copy("ws/link", "ws/link2")).await;
    for (method, params) in [
        ("fs/readFile", json!({"path": uri("outside/file")})),
        ("fs/readFile", json!({"path": uri("ws/link/file")})),
        ("fs/readFile", json!({"path": "file:///etc/passwd"})),
        (
            "fs/open",
            json!({"path": uri("ws/link/file"), "handleId": "h"}),
        ),
        (
            "fs/createStream",
            json!({"path": uri("outside/new"), "handleId": "h"}),
        ),
        ("fs/writeFile", write("ws/link/new")),
        ("fs/writeFile", write("outside/new")),
        ("fs/readDirectory", json!({"path": uri("ws/link")})),
        ("fs/remove", json!({"path": uri("ws/link/file")})),
        ("fs/copy", copy("outside/file", "ws/copy")),
        ("fs/copy", copy("ws/own", "outside/copy")),
        ("fs/canonicalize", json!({"path": uri("ws/link")})),
        ("fs/watch", json!({"path": uri("outside"), "watchId": "w"})),
        (
            "fs/watchMissing",
            json!({"watchId": 1, "missing": [uri("outside/x")], "present": null}),
        ),
    ] {
        roots.refused(method, params).await;
    }
    // A link is an entry of its directory.
    client
        .call("fs/remove", json!({"path": uri("ws/link2")}))
        .await;
    assert!(roots.directories.path("outside/file").exists());
    assert!(!roots.directories.path("outside/new").exists());
    client
        .call("fs/watch", json!({"path": uri("ws"), "watchId": "w"}))
        .await;
    // Files that the client does not name are not read either.
    let read = json!({"cwd": uri("ws"), "configPaths": [["x"]], "requirementsPaths": []});
    client.call("environmentConfig/read", read).await;
}

/// A file operation that resolves its path again finds nothing outside, whatever was checked before.
#[tokio::test]
async fn link_that_is_made_during_an_operation_leads_nowhere() {
    for setting in ["", "sandbox = \":workspace\""] {
        check_links(&Roots::with(setting).await).await;
    }
}

async fn check_links(roots: &Roots) {
    let (flip, target) = (
        roots.directories.path("ws/flip"),
        roots.directories.path("outside"),
    );
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flipping = std::thread::spawn({
        let stop = std::sync::Arc::clone(&stop);
        move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::create_dir(&flip).expect("a directory");
                std::fs::write(flip.join("file"), "inside").expect("a file");
                std::fs::remove_dir_all(&flip).expect("removed");
                std::os::unix::fs::symlink(&target, &flip).expect("a link");
                std::fs::remove_file(&flip).expect("removed");
            }
        }
    });
    for _ in 0..60 {
        let read = json!({"path": roots.uri("ws/flip/file")});
        if let Ok(read) = roots.client.try_call("fs/readFile", read).await {
            assert_ne!(unbase64(&read["dataBase64"]), b"outside");
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    flipping.join().expect("the thread");
}
