//! Tests that file operations, watches, discovery and HTTP requests of a principal with a sandbox are no
//! way around it.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use outpost_testkit::{base64, file_uri, sh, unbase64};
use serde_json::{Value, json};

use crate::outpost;

use super::{
    floor::Floor,
    new_token,
    support::{Directories, entry, managed, pattern, special},
};

#[tokio::test]
async fn file_operations_get_the_sandbox_of_the_principal() {
    let floor = Floor::new().await;
    let (client, path) = (&floor.sandboxed, |name: &str| floor.directories.path(name));
    let uri = |name: &str| file_uri(&path(name));
    let written = json!({"path": uri("ws/new"), "dataBase64": base64("new")});
    client.call("fs/writeFile", written).await;
    let read = client
        .call("fs/readFile", json!({"path": uri("ws/own")}))
        .await;
    assert_eq!(unbase64(&read["dataBase64"]), b"own");
    for (method, params) in [
        ("fs/readFile", json!({"path": uri("outside/file")})),
        ("fs/readFile", json!({"path": uri("ws/link/file")})),
        ("fs/readDirectory", json!({"path": uri("outside")})),
        ("fs/getMetadata", json!({"path": "file:///etc/passwd"})),
        ("fs/readFile", json!({"path": uri("secret/config.toml")})),
        ("fs/readFile", json!({"path": uri("ws/key.pem")})),
        ("fs/readFile", json!({"path": uri("tokens.toml")})),
        (
            "fs/open",
            json!({"path": uri("ws/key.pem"), "handleId": "h"}),
        ),
        ("fs/readDirectory", json!({"path": uri("secret")})),
        (
            "fs/writeFile",
            json!({"path": uri("outside/new"), "dataBase64": ""}),
        ),
        (
            "fs/writeFile",
            json!({"path": uri("ws/link/new"), "dataBase64": ""}),
        ),
        (
            "fs/writeFile",
            json!({"path": uri("outpost.toml"), "dataBase64": ""}),
        ),
        (
            "fs/open",
            json!({"path": uri("outside/file"), "handleId": "h", "mode": "replace"}),
        ),
        (
            "fs/createStream",
            json!({"path": uri("outside/file"), "handleId": "h"}),
        ),
        ("fs/createDirectory", json!({"path": uri("outside/new")})),
        ("fs/remove", json!({"path": uri("outside/file")})),
        (
            "fs/copy",
            json!({
                "sourcePath": uri("secret/config.toml"), "destinationPath": uri("ws/copy"),
            }),
        ),
        (
            "fs/copy",
            json!({
                "sourcePath": uri("ws/own"), "destinationPath": uri("outside/new"),
            }),
        ),
    ] {
        client.call_fails(method, params).await;
    }
    assert!(!path("outside/new").exists() && path("outside/file").exists());
    let wider = [
        json!({"permissions": {"type": "disabled"}}),
        floor.with_entries(&[entry(&path("outside"), "write")]),
        managed(&[special("root", "read")], "restricted", &[]),
    ];
    for sandbox in wider {
        let params = json!({"path": uri("outside/file"), "sandbox": sandbox});
        floor.refused("fs/readFile", params.clone()).await;
        floor.refused("fs/getMetadata", params.clone()).await;
        let mut open = params;
        open["handleId"] = json!("wide");
        floor.refused("fs/open", open).await;
    }
}

/// The roots bound file operations whatever their sandbox grants.
#[tokio::test]
async fn sandbox_of_a_file_operation_is_narrowed_to_the_roots() {
    let floor = Floor::new().await;
    let uri = |name: &str| file_uri(&floor.directories.path(name));
    std::os::unix::fs::symlink("../outside", floor.directories.path("ws/sub/way")).expect("a link");
    let sandbox = floor.with_entries(&[pattern("codex-project-roots://**/*.pem")]);
    let read = |path: &str| json!({"path": uri(path), "sandbox": sandbox});
    let own = floor.sandboxed.call("fs/readFile", read("ws/own")).await;
    assert_eq!(unbase64(&own["dataBase64"]), b"own");
    for outside in ["outside/file", "ws/sub/way/file"] {
        floor.refused("fs/readFile", read(outside)).await;
    }
    let write = json!({"path": uri("ws/new"), "dataBase64": "", "sandbox": sandbox});
    floor.sandboxed.call("fs/writeFile", write).await;
    let link = entry(&floor.directories.path("ws/link"), "read");
    let roots = [floor.directories.path("ws")];
    let roots = roots.each_ref().map(|root| &**root);
    let linked = json!({"path": uri("ws/own"), "sandbox": managed(&[link], "restricted", &roots)});
    floor.sandboxed.call_fails("fs/readFile", linked).await;
}

#[tokio::test]
async fn discovery_gets_the_sandbox_of_the_principal() {
    let floor = Floor::new().await;
    let read = json!({"cwd": file_uri(&floor.directories.path("ws")), "configPaths": [["mcp_servers"]], "requirementsPaths": []});
    let found = |result: &Value| result.to_string().contains("command = ");
    let result = floor
        .free
        .call("environmentConfig/read", read.clone())
        .await;
    assert!(found(&result), "{result}");
    if let Ok(result) = floor
        .sandboxed
        .try_call("environmentConfig/read", read)
        .await
    {
        assert!(!found(&result), "{result}");
    }
    let secret = file_uri(&floor.directories.path("secret"));
    let skill = floor.directories.path("secret/SKILL.md");
    std::fs::write(skill, "---\nname: hidden\n---\n").expect("a file");
    let roots = json!({"roots": [{"id": "r", "path": secret}]});
    let result = floor
        .free
        .call("capabilityRoots/discoverV1", roots.clone())
        .await;
    assert!(result.to_string().contains("hidden"), "{result}");
    let result = floor
        .sandboxed
        .call("capabilityRoots/discoverV1", roots)
        .await;
    assert!(!result.to_string().contains("hidden"), "{result}");
}

#[tokio::test]
async fn watches_and_http_requests_are_refused() {
    let floor = Floor::new().await;
    let ws = file_uri(&floor.directories.path("ws"));
    let watch = json!({"path": ws, "watchId": "w"});
    floor.refused("fs/watch", watch).await;
    let missing = json!({"watchId": 1, "missing": [format!("{ws}/x")], "present": null});
    floor.refused("fs/watchMissing", missing).await;
    let request = json!({"requestId": "r", "method": "GET", "url": "http://127.0.0.1:1/"});
    floor.refused("http/request", request.clone()).await;
    let online = Floor::with_network("enabled").await;
    let error = online.sandboxed.call_fails("http/request", request).await;
    assert_ne!(error.parts().0, -32011, "its sandbox has the network");
}

/// Files that decide who may connect are not for sandboxed processes, whatever their policy grants.
#[tokio::test]
async fn secrets_of_the_server_are_hidden() {
    let directories = Directories::new();
    let config =
        "[principals.ci]\nsandbox = \"all\"\n[sandbox.profiles.all.files]\n\":root\" = \"write\"\n";
    let token = directories.token("ci").await;
    let socket = directories.text("outpost.sock");
    let server = directories
        .server(config)
        .args(&["--audit-log", &directories.text("audit.log")])
        .listen(&format!("unix://{socket}"));
    let server = server.start().await;
    let client = server.client_with_token(&token).await;
    let script = format!(
        "cat {0}/audit.log; echo >> {0}/audit.log; rm -f {0}/audit.log; cat {0}/tokens.toml; echo >> {0}/tokens.toml; mv {0}/tokens.toml {0}/moved; echo >> {0}/outpost.toml; \
         test -S {0}/outpost.sock && echo reachable; touch {0}/ok && echo written",
        directories.text("")
    );
    let log = client.run(sh("p", &script)).await;
    assert_eq!(log.stdout(), "written\n", "{}", log.stderr());
    let audit = std::fs::read_to_string(directories.path("audit.log")).expect("a file");
    assert!(audit.lines().all(|line| line.starts_with('{')), "{audit}");
    let tokens = std::fs::read_to_string(directories.path("tokens.toml")).expect("a file");
    assert!(
        tokens.contains("sha256") && !tokens.ends_with("\n\n"),
        "{tokens}"
    );
}

/// A file that is replaced loses what was mounted over it; a directory of secrets does not.
#[tokio::test]
async fn replaced_secret_in_a_directory_of_its_own_stays_hidden() {
    let directories = Directories::new();
    let file = directories.path("secrets/tokens.toml");
    let secrets = directories.path("secrets");
    std::fs::create_dir(&secrets).expect("a directory");
    std::fs::set_permissions(secrets, Permissions::from_mode(0o700)).expect("its mode");
    let file = file.to_str().expect("text");
    let token = new_token(file, "ci", &[]).await;
    let config =
        "[principals.ci]\nsandbox = \"all\"\n[sandbox.profiles.all.files]\n\":root\" = \"write\"\n";
    std::fs::write(directories.path("outpost.toml"), config).expect("a file");
    let config = directories.text("outpost.toml");
    let server = outpost().args(&["--config", &config, "--tokens-file", file]);
    let server = server.start().await;
    let client = server.client_with_token(&token).await;
    let script = format!(
        "echo ready; read go; cat {file}; ls {}; echo done",
        directories.text("secrets")
    );
    client.start(sh("p", &script).stdin()).await;
    client.wait_output("p", "ready").await;
    new_token(file, "later", &[]).await;
    client.write("p", "go\n", "w").await;
    let log = client.closed("p").await;
    assert_eq!(log.stdout(), "ready\ndone\n", "{}", log.stderr());
}
