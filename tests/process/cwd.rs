//! Tests `cwd`: a `file:` URI that is absolute on this host.

use std::fs;
use std::os::unix::fs::symlink;

use outpost_testkit::{Start, file_uri};

use crate::ready;

#[tokio::test]
async fn file_uri_is_the_working_directory() {
    let (server, client) = ready().await;
    let dir = fs::canonicalize(server.dir()).expect("a directory");
    let special_path = dir.join("with space & ünï %41 #?");
    fs::create_dir(&special_path).expect("a directory");
    let plain = dir.display();
    let uris = [
        (file_uri(&special_path), special_path.display().to_string()),
        (format!("file://{plain}"), plain.to_string()),
        (format!("file://localhost{plain}"), plain.to_string()),
        (format!("file://LOCALHOST{plain}"), plain.to_string()),
        (format!("file:{plain}"), plain.to_string()),
        (format!("FILE://{plain}"), plain.to_string()),
        (format!("file://{plain}/"), plain.to_string()),
        (format!("file://{plain}/./x/../"), plain.to_string()),
        (
            format!("file://{plain}/%2e%2e/%2E%2E/../../.."),
            "/".to_owned(),
        ),
        ("file:///".to_owned(), "/".to_owned()),
    ];
    for (n, (uri, expected)) in uris.into_iter().enumerate() {
        let start = Start::new(&format!("p{n}"), &["/bin/pwd"]).with("cwd", uri.as_str());
        let log = client.run(start).await;
        assert_eq!(log.text(), format!("{expected}\n"), "{uri}");
    }
}

#[tokio::test]
async fn dot_segments_are_resolved_textually() {
    let (server, client) = ready().await;
    let dir = fs::canonicalize(server.dir()).expect("a directory");
    fs::create_dir_all(dir.join("far/away")).expect("a directory");
    symlink(dir.join("far/away"), dir.join("link")).expect("a link");
    let uri = format!("file://{}/link/..", dir.display());
    let start = Start::new("p", &["/bin/pwd"]).with("cwd", uri.as_str());
    assert_eq!(
        client.run(start).await.text(),
        format!("{}\n", dir.display())
    );
}

#[tokio::test]
async fn other_uris_are_32602() {
    let (_server, client) = ready().await;
    let rejected = [
        "",
        "/tmp",
        "tmp",
        "./tmp",
        "file:",
        "file:tmp",
        "file://",
        "file:///tmp?query",
        "file:///tmp#fragment",
        "file:///tmp/%00",
        "file:///tmp/\0",
        "file:///tmp/%zz",
        "file:///tmp/%4",
        "file://otherhost/tmp",
        "file://127.0.0.1/tmp",
        "file://localhost:80/tmp",
        "http:///tmp",
        "https://localhost/tmp",
        "ssh://localhost/tmp",
    ];
    for uri in rejected {
        let start = Start::new("p", &["true"]).with("cwd", uri);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602, "{uri:?}: {}", error.message);
    }
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn missing_directory_is_32603() {
    let (server, client) = ready().await;
    let missing = server.dir().join("missing");
    let error = client
        .start_fails(Start::new("p", &["true"]).cwd(&missing))
        .await;
    assert_eq!(error.code, -32603);
    let message = "No such file or directory (os error 2)";
    assert!(error.message.contains(message), "{}", error.message);
}
