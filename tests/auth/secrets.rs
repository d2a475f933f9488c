//! Tests that the server keeps its secrets from principals that may use files.

use std::os::unix::fs::symlink;

use outpost_testkit::file_uri;
use serde_json::json;

use super::support::Directories;

const PRINCIPALS: &str = "\
    [principals.files]\nscopes = [\"files:read\", \"files:write\"]\n\
    [principals.writer]\nscopes = [\"files:write\"]\n\
    [principals.root]\nscopes = [\"admin\"]\n";

#[tokio::test]
async fn secrets_of_the_server_are_no_files_for_its_clients() {
    let directories = Directories::new();
    let token = directories.token("files").await;
    let server = directories.server(PRINCIPALS).start().await;
    let client = server.client_with_token(&token).await;
    let uri = |name: &str| file_uri(&directories.path(name));
    symlink(directories.path("tokens.toml"), directories.path("link")).expect("a link");
    for (method, params) in [
        ("fs/readFile", json!({"path": uri("tokens.toml")})),
        ("fs/readFile", json!({"path": uri("link")})),
        (
            "fs/open",
            json!({"handleId": "h", "path": uri("tokens.toml")}),
        ),
        (
            "fs/copy",
            json!({"sourcePath": uri("tokens.toml"), "destinationPath": uri("copy")}),
        ),
        (
            "fs/writeFile",
            json!({"path": uri("tokens.toml"), "dataBase64": ""}),
        ),
    ] {
        let error = client.call_fails(method, params).await;
        let text = error.parts().1;
        assert!(
            text.contains("leads to a secret of the server"),
            "{method}: {text}"
        );
    }
    let read = client.call("fs/readFile", json!({"path": uri("outside/file")}));
    assert_eq!(read.await["dataBase64"], "b3V0c2lkZQ==");
    // The file is replaced.
    directories.token("later").await;
    let error = client.call_fails("fs/readFile", json!({"path": uri("tokens.toml")}));
    assert!(error.await.parts().1.contains("secret"), "the new file");
}

#[tokio::test]
async fn settings_of_authentication_are_for_admins() {
    let directories = Directories::new();
    let (files, root) = (
        directories.token("files").await,
        directories.token("root").await,
    );
    let server = directories.server(PRINCIPALS).start().await;
    let with_layers = json!({"includeLayers": true});
    let client = server.client_with_token(&files).await;
    let seen = client.call("config/read", with_layers.clone()).await;
    assert_eq!(seen["config"]["max_sessions"], 4096);
    let seen = seen.to_string();
    for private in ["tokens_file", "principals", "ws_token_sha256", "writer"] {
        assert!(!seen.contains(private), "{private}: {seen}");
    }
    let admin = server.client_with_token(&root).await;
    let seen = admin.call("config/read", with_layers).await;
    assert_eq!(
        seen["config"]["principals"]["writer"]["scopes"][0],
        "files:write"
    );
}

#[tokio::test]
async fn writer_closes_what_it_has_opened() {
    let directories = Directories::new();
    let token = directories.token("writer").await;
    let server = directories.server(PRINCIPALS).start().await;
    let client = server.client_with_token(&token).await;
    let path = file_uri(&directories.path("new"));
    let create = json!({"handleId": "h", "path": path});
    client.call("fs/createStream", create).await;
    client.call("fs/close", json!({"handleId": "h"})).await;
}
