//! `cwd`: a `file:` URI that is absolute on this host.

use std::fs;
use std::os::unix::fs::symlink;

use outpost_testkit::{Start, file_uri};

use crate::ready;

#[tokio::test]
async fn a_file_uri_is_where_the_child_runs() {
    let (server, client) = ready().await;
    let folder = fs::canonicalize(server.folder()).expect("a folder");
    let odd = folder.join("with space & ünï %41 #?");
    fs::create_dir(&odd).expect("a folder");
    let plain = folder.display();
    let uris = [
        (file_uri(&odd), odd.display().to_string()),
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
        let story = client.run(start).await;
        assert_eq!(story.text(), format!("{expected}\n"), "{uri}");
    }
}

#[tokio::test]
async fn dots_are_resolved_before_anybody_follows_a_link() {
    let (server, client) = ready().await;
    let folder = fs::canonicalize(server.folder()).expect("a folder");
    fs::create_dir_all(folder.join("far/away")).expect("a folder");
    symlink(folder.join("far/away"), folder.join("link")).expect("a link");
    let uri = format!("file://{}/link/..", folder.display());
    let start = Start::new("p", &["/bin/pwd"]).with("cwd", uri.as_str());
    assert_eq!(
        client.run(start).await.text(),
        format!("{}\n", folder.display())
    );
}

#[tokio::test]
async fn anything_else_is_32602() {
    let (_server, client) = ready().await;
    let refused = [
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
    for uri in refused {
        let start = Start::new("p", &["true"]).with("cwd", uri);
        let error = client.start_fails(start).await;
        assert_eq!(error.code, -32602, "{uri:?}: {}", error.message);
    }
    assert_eq!(client.listed("p").await, None);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_32603() {
    let (server, client) = ready().await;
    let missing = server.folder().join("missing");
    let error = client
        .start_fails(Start::new("p", &["true"]).cwd(&missing))
        .await;
    assert_eq!(error.code, -32603);
    let words = "No such file or directory (os error 2)";
    assert!(error.message.contains(words), "{}", error.message);
}
